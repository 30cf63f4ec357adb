import type { Citation, ReplyPart } from '../reply.ts'
import { FOREIGN_PAGE } from '../envelope.ts'
import { asRecord } from '../json/record.ts'
import type { SearchPart } from '../provider-search.ts'

/**
 * Decodes a block of a reply, or of a stream after its deltas were applied. `input` is the text of a call's
 * input. Blocks that other dialects cannot express become opaque parts; none is refused.
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

/** Citations of a text block, which apply to its whole text; for spreading into the part. */
function citationsIn(value: unknown): { citations?: readonly Citation[] } {
  if (!Array.isArray(value)) return {}
  const citations = value.flatMap((entry) => readCitation(asRecord(entry)) ?? [])
  return citations.length > 0 ? { citations } : {}
}

/** Reads a citation of a web page; undefined for citations of documents, which other dialects do not have. */
export function readCitation(value: Readonly<Record<string, unknown>> | undefined): Citation | undefined {
  const url = textOf(value?.['url'])
  if (value?.['type'] !== 'web_search_result_location' || url === '') return undefined
  return { url, title: textOf(value['title']) }
}

/**
 * Encodes a citation. Clients expect `cited_text` and `encrypted_index` to be strings, but other dialects
 * have neither. The placeholder shows which citations must be left out when the client sends them back.
 */
export function writeCitation({ url, title }: Citation): object {
  return { type: 'web_search_result_location', cited_text: '', url, title, encrypted_index: FOREIGN_PAGE }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
