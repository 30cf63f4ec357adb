import type { Citation, ReplyPart } from '../reply.ts'
import { FOREIGN_PAGE_ENVELOPE } from '../signature-envelope.ts'
import { asRecord } from '../json/record.ts'
import type { SearchResultPage, SearchPart } from '../conversation.ts'
import { ToolUseCounter, type ToolUse } from '../tool-use.ts'

/**
 * Decodes a complete block of a reply. `input` is the JSON text of a tool call's input. Blocks that other
 * protocols cannot express become opaque parts. No type of block is refused.
 */
export function readBlock(
  block: Readonly<Record<string, unknown>>,
  input: string,
): Exclude<ReplyPart, SearchPart> {
  switch (block['type']) {
    case 'text':
      return { kind: 'text', text: textOf(block['text']), ...citationsIn(block['citations']) }
    case 'thinking': {
      const signature = textOf(block['signature'])
      return {
        kind: 'thinking',
        text: textOf(block['thinking']),
        ...(signature !== '' && { proof: { protocol: 'messages', value: signature } }),
      }
    }
    case 'tool_use':
      return { kind: 'tool-call', id: textOf(block['id']), name: textOf(block['name']), input }
    default:
      return { kind: 'opaque', protocol: 'messages', value: block }
  }
}

/**
 * Reads the citations of a text block, as an object to spread into the text part. The citations apply to its
 * whole text.
 */
function citationsIn(value: unknown): { citations?: readonly Citation[] } {
  if (!Array.isArray(value)) return {}
  const citations = value.flatMap((entry) => readCitation(asRecord(entry)) ?? [])
  return citations.length > 0 ? { citations } : {}
}

/** Reads a citation of a web page; undefined if it cites a document, which other protocols cannot express. */
export function readCitation(value: Readonly<Record<string, unknown>> | undefined): Citation | undefined {
  const url = textOf(value?.['url'])
  if (value?.['type'] !== 'web_search_result_location' || url === '') return undefined
  return { url, title: textOf(value['title']) }
}

/**
 * Encodes a citation. Clients expect `cited_text` and `encrypted_index`, which other protocols do not have,
 * to be strings. A placeholder in `encrypted_index` marks the citation, so that it is left out when a client
 * sends it back.
 */
export function writeCitation({ url, title }: Citation): object {
  return {
    type: 'web_search_result_location',
    cited_text: '',
    url,
    title,
    encrypted_index: FOREIGN_PAGE_ENVELOPE,
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** The `caller` of a tool that the model calls itself, not by code that it runs. */
export const DIRECT_CALLER = { type: 'direct' }

type Block = Readonly<Record<string, unknown>>

/** Maximum number of searches whose queries are remembered until the block with their result arrives. */
const MAX_QUERIES = 64

/**
 * Prefix of the ids of searches that other providers ran. Such searches are left out of requests to
 * upstreams.
 */
export const FOREIGN_SEARCH_ID_PREFIX = 'srvtoolu_sluice'

/**
 * Reads web searches from the blocks of a message: a `server_tool_use` block contains the query, a later
 * `web_search_tool_result` block the pages.
 */
export class ServerSearchReader {
  readonly #queries = new Map<string, string>()

  /** Reads a block of a message. If the block is the result of a search, returns the search. */
  note(block: unknown): SearchPart | undefined {
    const { type, id, name, input, tool_use_id: of, content } = asRecord(block) ?? {}
    if (type === 'server_tool_use' && name === 'web_search' && typeof id === 'string') {
      if (this.#queries.size < MAX_QUERIES) this.#queries.set(id, textOf(asRecord(input)?.['query']))
      return undefined
    }
    if (type !== 'web_search_tool_result') return undefined
    const query = this.#queries.get(textOf(of)) ?? ''
    this.#queries.delete(textOf(of))
    const pages = Array.isArray(content) ? content.flatMap((page) => readPage(asRecord(page)) ?? []) : []
    return { kind: 'search', protocol: 'messages', query, pages, isFailed: !Array.isArray(content) }
  }
}

/**
 * Whether the value of an opaque part is the result of a web search. If so, the part after it is the same
 * search as a `SearchPart`.
 */
export function isSearchResult(value: unknown): boolean {
  return asRecord(value)?.['type'] === 'web_search_tool_result'
}

/**
 * Returns the two blocks of a search that another provider ran: its query and its result. `key` makes the id
 * of the search unique in the reply.
 */
export function searchBlocks({ query, pages, isFailed }: SearchPart, key: string): readonly [Block, Block] {
  const id = `${FOREIGN_SEARCH_ID_PREFIX}${key.replaceAll(/\W/g, '_')}`
  return [
    { type: 'server_tool_use', id, name: 'web_search', input: { query }, caller: DIRECT_CALLER },
    {
      type: 'web_search_tool_result',
      tool_use_id: id,
      caller: DIRECT_CALLER,
      content: isFailed
        ? { type: 'web_search_tool_result_error', error_code: 'unavailable' }
        : pages.map(writePage),
    },
  ]
}

function readPage(page: Block | undefined): SearchResultPage | undefined {
  const url = textOf(page?.['url'])
  return url === '' ? undefined : { url, title: textOf(page?.['title']) }
}

/** Writes a found page. Its encrypted content is a placeholder, because clients expect a string. */
function writePage({ url, title }: SearchResultPage): Block {
  return {
    type: 'web_search_result',
    url,
    title: title || url,
    encrypted_content: FOREIGN_PAGE_ENVELOPE,
    page_age: null,
  }
}

/** Kinds of tools that the provider runs, by the name of the tool in blocks. */
const KINDS: ReadonlyMap<unknown, ToolUse['kind']> = new Map<unknown, ToolUse['kind']>([
  ['web_search', 'web_search'],
  ['web_fetch', 'web_fetch'],
  ['code_execution', 'code_execution'],
  ['bash_code_execution', 'code_execution'],
  ['text_editor_code_execution', 'code_execution'],
])

/**
 * Records the use of a tool that a block reports. All code of a message runs in one container, which is
 * recorded as one use.
 */
export function recordBlockToolUse(tally: ToolUseCounter, index: number, value: unknown): void {
  const block = asRecord(value)
  const type = block?.['type']
  const kind =
    type === 'mcp_tool_use' ? 'mcp' : type === 'server_tool_use' ? KINDS.get(block?.['name']) : undefined
  if (kind) tally.note(kind === 'code_execution' ? 'container' : `block ${index}`, { kind, count: 1 })
}

/** Returns the uses of tools that the blocks of a message report. */
export function toolUsesIn(content: unknown): readonly ToolUse[] {
  const tally = new ToolUseCounter()
  if (Array.isArray(content))
    for (const [index, block] of content.entries()) recordBlockToolUse(tally, index, block)
  return tally.uses
}
