-- Which of some texts are stored, and when each was last seen.
SELECT Hash, max(LastSeen) AS LastSeen
FROM passage_texts
WHERE Hash IN (SELECT toFixedString(unhex(arrayJoin({hashes:Array(String)})), 16))
GROUP BY Hash
