import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'

/** Longer runs of one letter cost a tokenizer time that grows with their square. */
const PIECE = 2_000
/** A caller's text is only text, even where it spells a vocabulary's control tokens. */
const AS_TEXT = { disallowedSpecial: new Set<string>() }

/** `text` is counted; where it is only the beginning of `length` characters, its proportion holds for the rest. */
parentPort?.on('message', ({ text, length }: { text: string; length: number }) => {
  let tokens = 0
  for (let at = 0; at < text.length; at += PIECE) tokens += countTokens(text.slice(at, at + PIECE), AS_TEXT)
  if (length > text.length) tokens = Math.ceil((tokens / text.length) * length)
  parentPort?.postMessage(tokens)
})
