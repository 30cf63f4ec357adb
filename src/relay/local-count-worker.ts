import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import type { CountedText } from './counted-text.ts'
import { PieceCounts } from './piece-counts.ts'

/** Takes a text as text even where it spells control tokens of the vocabulary. */
const AS_TEXT = { disallowedSpecial: new Set<string>() }

const counts = new PieceCounts((piece) => countTokens(piece, AS_TEXT))

parentPort?.on('message', (texts: readonly CountedText[]) => parentPort?.postMessage(texts.map(tokensOf)))

/** The tokens of a text, extrapolated from those of its pieces. */
function tokensOf({ pieces, factor }: CountedText): number {
  const tokens = pieces.reduce((sum, piece) => sum + counts.tokensOf(piece), 0)
  return Math.ceil(tokens * factor)
}
