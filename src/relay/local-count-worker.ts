import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'
import type { TextToCount } from './local-count.ts'

/** Longer runs of one letter cost a tokenizer time that grows with their square. */
const PIECE_LENGTH = 2_000
/** A caller's text is only text, even where it spells a vocabulary's control tokens. */
const AS_TEXT = { disallowedSpecial: new Set<string>() }

parentPort?.on('message', (texts: readonly TextToCount[]) => parentPort?.postMessage(texts.map(tokensOf)))

/** Where the text is only a beginning, its proportion holds for the rest. */
function tokensOf({ text, length }: TextToCount): number {
  let tokens = 0
  for (let at = 0; at < text.length; at += PIECE_LENGTH)
    tokens += countTokens(text.slice(at, at + PIECE_LENGTH), AS_TEXT)
  return length > text.length ? Math.ceil((tokens / text.length) * length) : tokens
}
