import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import type { TextToCount } from './local-count.ts'
import { PieceCounts } from './piece-counts.ts'

/** Takes a text as text even where it spells control tokens of the vocabulary. */
const AS_TEXT = { disallowedSpecial: new Set<string>() }

const counts = new PieceCounts((piece) => countTokens(piece, AS_TEXT))

parentPort?.on('message', (texts: readonly TextToCount[]) => parentPort?.postMessage(texts.map(tokensOf)))

/** The tokens of a text, extrapolated where it is only a beginning. */
function tokensOf({ text, length }: TextToCount): number {
  const tokens = counts.tokensOf(text)
  return length > text.length ? Math.ceil((tokens / text.length) * length) : tokens
}
