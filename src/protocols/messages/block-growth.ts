import { parseExact } from '../json/exact-json.ts'

type Block = Readonly<Record<string, unknown>>

/** Application of a delta to a block that no other dialect knows. */
type Growth = (block: Block, delta: Block) => Block

const GROWTHS: ReadonlyMap<unknown, Growth> = new Map<unknown, Growth>([
  ['text_delta', (block, delta) => added(block, 'text', delta['text'])],
  ['thinking_delta', (block, delta) => added(block, 'thinking', delta['thinking'])],
  ['compaction_delta', (block, delta) => added(block, 'content', delta['content'])],
  ['signature_delta', (block, delta) => ({ ...block, signature: delta['signature'] })],
])

/** Applies a delta to a block; unknown types change nothing. */
export function grown(block: Block, delta: Block): Block {
  return GROWTHS.get(delta['type'])?.(block, delta) ?? block
}

/** Sets a block's input, which came as text; unchanged if the text is not JSON. */
export function withInput(block: Block, input: string): Block {
  if (input === '') return block
  try {
    return { ...block, input: parseExact(input) }
  } catch {
    return block
  }
}

function added(block: Block, key: string, text: unknown): Block {
  const before = block[key]
  return typeof text === 'string'
    ? { ...block, [key]: (typeof before === 'string' ? before : '') + text }
    : block
}
