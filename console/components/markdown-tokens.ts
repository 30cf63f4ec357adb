import { lexer, type Token, type Tokens } from 'marked'

/** Longer texts, in UTF-16 units, would block the page while they are read. */
const MAX_LENGTH = 100_000
/** With more marks of emphasis, too: the time for them grows with the square of their number. */
const MAX_MARKS = 1000
/** React renders no deeper tree for certain. */
const MAX_DEPTH = 100

/** The tokens of a Markdown text; undefined if it is too long, or nested too deeply, to be shown as Markdown. */
export function markdownTokens(text: string): readonly Token[] | undefined {
  if (text.length > MAX_LENGTH || (text.match(/[*_~]+/g)?.length ?? 0) > MAX_MARKS) return undefined
  try {
    const tokens = lexer(text)
    return isDeeper(tokens, MAX_DEPTH) ? undefined : tokens
  } catch {
    // The stack of the lexer overflows before anything else of it fails.
    return undefined
  }
}

function isDeeper(tokens: readonly Token[], levels: number): boolean {
  return (
    tokens.length > 0 && (levels === 0 || tokens.some((token) => isDeeper(childrenOf(token), levels - 1)))
  )
}

function childrenOf(token: Token): readonly Token[] {
  const { tokens, items } = token as Partial<Tokens.Blockquote & Tokens.List>
  return items ?? tokens ?? []
}
