const WORD = /[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu

/** Words that do not indicate a topic. */
export const COMMON_WORDS: ReadonlySet<string> = new Set(
  (
    'a about after all also am an and any are as at be because been but by can could did do does done for from ' +
    'get give had has have he hello help her here hey hi him his how i if in into is it its just know like ' +
    'make many may me more most much my need no not now of on one only or our out over please say she should ' +
    'show so some tell than thank thanks that the their them then there these they this those to two up us ' +
    'use using want was we were what when where which who why will with word words write would you your ' +
    'answer explain describe sentence sentences short briefly'
  ).split(' '),
)

/** Splits a text into words, as written. */
export function splitWords(text: string): string[] {
  return text.match(WORD) ?? []
}

/** Returns the words that carry meaning, in lower case. */
export function keywords(text: string): string[] {
  return splitWords(text)
    .map((word) => word.toLowerCase())
    .filter((word) => !COMMON_WORDS.has(word))
}

/** Finds the topic of a message, in at most three of its words; undefined if it has none. */
export function topicOf(message: string): string | undefined {
  const candidates = splitWords(message.slice(0, 2000)).filter(
    (word) => !COMMON_WORDS.has(word.toLowerCase()),
  )
  const unique = [...new Map(candidates.map((word) => [word.toLowerCase(), word])).values()]
  if (unique.length === 0) return undefined
  const telling = new Set(unique.toSorted((a, b) => b.length - a.length).slice(0, 3))
  return unique
    .filter((word) => telling.has(word))
    .map((word) => word.slice(0, 24))
    .join(' ')
}
