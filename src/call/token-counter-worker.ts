import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { serve } from '../ipc/serve.ts'
import type { CountedText, TokenCountRequests } from './token-counter.ts'
import { O200K_WORDS, PieceCounts, Vocabulary } from './vocabulary.ts'

// Importing `node:fs` would load all of it, including streams and promises, which takes 8 ms at each start.
const { readFileSync } = process.getBuiltinModule('node:fs')

const FILE = fileURLToPath(import.meta.resolve('gpt-tokenizer/data/o200k_base.tiktoken'))
const vocabulary = new Vocabulary(readFileSync(FILE), O200K_WORDS)
const counts = new PieceCounts((piece) => vocabulary.count(piece))

serve<TokenCountRequests>({ count: (texts) => texts.map(tokensOf) })

/** Estimates the tokens of a text from the tokens of its pieces. */
function tokensOf({ pieces, factor }: CountedText): number {
  const tokens = pieces.reduce((sum, piece) => sum + counts.tokensOf(piece), 0)
  return Math.ceil(tokens * factor)
}
