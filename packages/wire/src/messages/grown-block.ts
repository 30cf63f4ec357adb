type Block = Readonly<Record<string, unknown>>

/** Returns a block with the content of a delta added. */
type Growth = (block: Block, delta: Block) => Block

const GROWTHS: ReadonlyMap<unknown, Growth> = new Map<unknown, Growth>([
  ['text_delta', (block, delta) => added(block, 'text', delta['text'])],
  ['thinking_delta', (block, delta) => added(block, 'thinking', delta['thinking'])],
  ['compaction_delta', (block, delta) => added(block, 'content', delta['content'])],
  ['signature_delta', (block, delta) => ({ ...block, signature: delta['signature'] })],
  [
    'citations_delta',
    (block, { citation }) => ({
      ...block,
      citations: [...(Array.isArray(block['citations']) ? block['citations'] : []), citation],
    }),
  ],
])

/** Returns a block with the content of a delta added. Unknown types of deltas are ignored, as clients do. */
export function grownBlock(block: Block, delta: Block): Block {
  return GROWTHS.get(delta['type'])?.(block, delta) ?? block
}

function added(block: Block, key: string, text: unknown): Block {
  const before = block[key]
  return typeof text === 'string'
    ? { ...block, [key]: (typeof before === 'string' ? before : '') + text }
    : block
}
