import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import type { TextToCount } from './local-count.ts'

/** Characters counted at a time: the time for a run of one letter grows with its square. */
const PIECE_LENGTH = 2_000
/** Takes a text as text even where it spells control tokens of the vocabulary. */
const AS_TEXT = { disallowedSpecial: new Set<string>() }

parentPort?.on('message', (texts: readonly TextToCount[]) => parentPort?.postMessage(texts.map(tokensOf)))

/** The tokens of a text, extrapolated where it is only a beginning. */
function tokensOf({ text, length }: TextToCount): number {
  let tokens = 0
  for (let at = 0; at < text.length; at += PIECE_LENGTH)
    tokens += countTokens(text.slice(at, at + PIECE_LENGTH), AS_TEXT)
  return length > text.length ? Math.ceil((tokens / text.length) * length) : tokens
}
