/** Words that no sentence of a document opens with: it opens with its subject. */
const WORDS = 'Of|Who|Whoever|Whom|Whose|What|Whatever|Those'

/** Matches an opening word at the start of a line, cell or sentence, and the rest of its sentence. */
const SENTENCE = new RegExp(
  String.raw`(?:^[ \t>]*(?:[-*+] |\d+\. |#+ )?|\| *|[.!?:][)\]"*_]*\s+)[*_"([]*(?<opening>${WORDS})\b[^.!?|]*[.!?|]?`,
  'gm',
)

/** Matches parts that are not prose: code, comments of HTML, and the headings of a table's columns. */
const NOT_PROSE = [/^ *```[\s\S]*?^ *```/gm, /`[^`\n]+`/g, /<!--[\s\S]*?-->/g, /^\|.*\|(?=\n\|[ :|-]+\|$)/gm]

/** A sentence that opens with a word of `WORDS`, and is not a question. */
export interface BadSentence {
  /** The line, from 1. */
  readonly line: number
  readonly message: string
}

/** Sentences, headings and cells of a Markdown page that open with a word of `WORDS`, except questions. */
export function badSentences(page: string): BadSentence[] {
  const prose = NOT_PROSE.reduce(
    // Characters stay where they are, so that lines can be counted.
    (text, part) => text.replaceAll(part, (match) => match.replaceAll(/[^\n]/g, '`')),
    page,
  )
  return [...prose.matchAll(SENTENCE)].flatMap(({ 0: sentence, index, groups }) => {
    const opening = groups?.['opening'] ?? ''
    if (sentence.endsWith('?')) return []
    const line = prose.slice(0, index + sentence.indexOf(opening)).split('\n').length
    return [{ line, message: `opens with "${opening}"` }]
  })
}
