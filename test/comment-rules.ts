/** Words that no comment opens with: it opens with a noun or a verb. */
const OPENING = /^(?:Of|Who|Whoever|What|Whatever|Whom|Whose|Those|It|They)\b/

/** The widest line of a comment, in columns. */
const MAX_COLUMNS = 110

/** Matches comments, and also strings, templates and regular expressions, whose content is no comment. */
const TOKEN = new RegExp(
  [
    /(?<comment>\/\*[\s\S]*?\*\/|\/\/[^\n]*)/,
    /"(?:\\.|[^"\\\n])*"/,
    /'(?:\\.|[^'\\\n])*'/,
    /`(?:\\[\s\S]|[^`\\])*`/,
    /(?<=(?:[=(,:;!&|?{}[>]|=>|\breturn)\s*)\/(?![/*])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/[\\\n])+\//,
  ]
    .map(({ source }) => source)
    .join('|'),
  'g',
)

/** A comment that breaks a rule. */
export interface BadComment {
  /** The line, from 1. */
  readonly line: number
  readonly message: string
}

/** The comments of a source file that open with a word of `OPENING`, or have lines wider than 110 columns. */
export function badComments(source: string): BadComment[] {
  const lines = source.split('\n')
  const found: BadComment[] = []
  let previousLine = 0
  for (const { index, groups } of source.matchAll(TOKEN)) {
    const comment = groups?.['comment']
    if (comment === undefined) continue
    const first = source.slice(0, index).split('\n').length
    const last = first + comment.split('\n').length - 1
    // Consecutive lines of `//` are one comment.
    const isContinued = comment.startsWith('//') && previousLine === first - 1 && isWhole(lines[first - 1])
    const opening = isContinued ? null : OPENING.exec(comment.replace(/^[/*\s]+/, ''))
    if (opening) found.push({ line: first, message: `opens with "${opening[0]}"` })
    for (let line = first; line <= last; line++) {
      const columns = Array.from(lines[line - 1] ?? '').length
      if (columns > MAX_COLUMNS) found.push({ line, message: `is ${columns} columns wide` })
    }
    previousLine = comment.startsWith('//') && isWhole(lines[first - 1]) ? last : 0
  }
  return found
}

/** Whether a line is a comment alone, not one behind code. */
function isWhole(line: string | undefined): boolean {
  return line?.trimStart().startsWith('//') ?? false
}
