-- How far the assembler got before this process began.
SELECT toUnixTimestamp64Milli(max(LastArrival)) AS LastMs, count() AS Rows FROM assembled
