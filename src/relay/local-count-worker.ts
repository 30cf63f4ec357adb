import { parentPort } from 'node:worker_threads'
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base'

/** Longer runs of one letter cost a tokenizer time that grows with their square. */
const PIECE = 2_000
/** Characters counted exactly; beyond them the proportion found so far holds. */
const EXACT = 256_000
/** A caller's text is only text, even where it spells a vocabulary's control tokens. */
const AS_TEXT = { disallowedSpecial: new Set<string>() }

parentPort?.on('message', ({ id, text }: { id: number; text: string }) => {
  let tokens = 0
  const exact = Math.min(text.length, EXACT)
  for (let at = 0; at < exact; at += PIECE)
    tokens += countTokens(text.slice(at, Math.min(at + PIECE, exact)), AS_TEXT)
  if (text.length > exact) tokens = Math.ceil((tokens / exact) * text.length)
  parentPort?.postMessage({ id, tokens })
})
