import type { Dropped } from '../codec.ts'
import type { MediaPart, OpaquePart, Part, TextPart, ToolResultPart, Turn } from '../conversation.ts'
import { open } from '../envelope.ts'
import { refuse } from '../field-check.ts'
import { parseExact } from '../json/exact-json.ts'
import { asRecord } from '../json/record.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { readCache } from './cache-mark.ts'
import { drop } from './dropped-fields.ts'
import { ServerSearches } from './server-tools.ts'

type Block = Readonly<Record<string, unknown>>

/** Position of a block, and where to report dropped fields. */
interface Place {
  readonly scan: ScannedObject
  readonly node: Node
  readonly path: string
  readonly dropped: Dropped
}

/**
 * Decodes the content of a message; a string is one text. Blocks that only messages has become opaque parts.
 * Throws `invalid_request` with the path of a malformed block, or of one that this role must not use.
 */
export function decodeContent(place: Place, role: Turn['role']): Part[] {
  const { scan, node, path } = place
  if (scan.kindOf(node) === 'string') return [{ kind: 'text', text: scan.parse(node) as string }]
  const searches = new ServerSearches()
  return scan.elements(node).flatMap((element, i) => {
    const at: Place = { ...place, node: element, path: `${path}[${i}]` }
    const block = blockAt(at)
    const owner = OWNERS.get(block['type'])
    if (owner !== undefined && owner !== role)
      refuse(`${at.path}.type`, `a block for a message of role '${role}'`, `a block for '${owner}'`)
    const search = searches.note(block)
    return [...decodeBlock(block, at), ...(search ? [search] : [])]
  })
}

/** Decodes system blocks and the content of system messages; only text is allowed. */
export function decodeSystem(place: Place): TextPart[] {
  const parts = decodeContent(place, 'user')
  return parts.flatMap((part, i) => {
    if (part.kind === 'text') return [part]
    return part.kind === 'opaque' || part.kind === 'search'
      ? []
      : refuse(`${place.path}[${i}].type`, `'text'`, 'a block that cannot be part of a system prompt')
  })
}

/** Types of blocks that only one role may use. */
const OWNERS: ReadonlyMap<unknown, Turn['role']> = new Map([
  ['tool_use', 'assistant'],
  ['thinking', 'assistant'],
  ['tool_result', 'user'],
])

function decodeBlock(block: Block, place: Place): Part[] {
  const { scan, node, path } = place
  switch (block['type']) {
    case 'tool_use': {
      const input = scan.memberOf(node, 'input')
      return [
        {
          kind: 'tool-call',
          id: text(block, 'id', path),
          name: text(block, 'name', path),
          input: input === undefined ? '' : scan.textOf(input),
          ...readCache(block, path),
        },
      ]
    }
    case 'tool_result':
      return [decodeResult(block, place)]
    case 'thinking': {
      const signature = block['signature']
      const thought = text(block, 'thinking', path)
      if (typeof signature !== 'string' || signature === '') return [{ kind: 'thinking', text: thought }]
      const enclosed = open(signature, 'messages')
      return ['opaque' in enclosed ? enclosed.opaque : { kind: 'thinking', text: thought, ...enclosed }]
    }
    default:
      return decodePlain(block, place)
  }
}

/** Decodes blocks that are allowed both in a message and in a tool result. */
function decodePlain(block: Block, place: Place): (TextPart | MediaPart | OpaquePart)[] {
  const { scan, node, path, dropped } = place
  switch (block['type']) {
    case 'text':
      if (Array.isArray(block['citations'])) drop(dropped, 'citations')
      return [{ kind: 'text', text: text(block, 'text', path), ...readCache(block, path) }]
    case 'image':
      return [decodeImage(block, path)]
    case 'document':
      if (asRecord(block['citations'])?.['enabled'] === true) drop(dropped, 'citations')
      return [...decodeDocument(block, path)]
    default:
      return [{ kind: 'opaque', protocol: 'messages', value: parseExact(scan.textOf(node)) }]
  }
}

function decodeResult(block: Block, place: Place): ToolResultPart {
  const { scan, node, path } = place
  const content = scan.memberOf(node, 'content')
  return {
    kind: 'tool-result',
    callId: text(block, 'tool_use_id', path),
    parts:
      content === undefined ? [] : decodeResultContent({ ...place, node: content, path: `${path}.content` }),
    isError: block['is_error'] === true,
    ...readCache(block, path),
  }
}

function decodeResultContent(place: Place): ToolResultPart['parts'] {
  const { scan, node, path } = place
  const kind = scan.kindOf(node)
  if (kind === 'string') return [{ kind: 'text', text: scan.parse(node) as string }]
  if (kind !== 'array') return []
  return scan.elements(node).flatMap((element, i) => {
    const at = { ...place, node: element, path: `${path}[${i}]` }
    return decodePlain(blockAt(at), at)
  })
}

function blockAt({ scan, node, path }: Place): Block {
  return asRecord(scan.parse(node)) ?? refuse(path, 'an object', 'something else')
}

function text(holder: Block, key: string, path: string): string {
  const value = holder[key]
  return typeof value === 'string' ? value : refuse(`${path}.${key}`, 'a string', 'something else')
}

const UNKNOWN_TYPE = 'application/octet-stream'

/**
 * Decodes an `image` block. Throws `invalid_request` for an invalid one, and for a file id, which is valid
 * only at the provider that issued it.
 */
function decodeImage(block: Block, path: string): MediaPart {
  const source = sourceOf(block, path)
  const cache = readCache(block, path)
  switch (source['type']) {
    case 'base64':
      return { kind: 'media', source: inline(source, `${path}.source`), ...cache }
    case 'url':
      return {
        kind: 'media',
        source: { kind: 'url', url: text(source, 'url', `${path}.source`), mediaType: 'image/*' },
        ...cache,
      }
    default:
      return refuse(`${path}.source.type`, `'base64' or 'url'`, 'a source that only its provider can read')
  }
}

/**
 * Decodes a `document` block: a file becomes media, text becomes text below its title and context, and
 * content becomes its blocks. A cache mark moves to the last part.
 */
function decodeDocument(block: Block, path: string): readonly (TextPart | MediaPart)[] {
  const source = sourceOf(block, path)
  const cache = readCache(block, path)
  const at = `${path}.source`
  const title = typeof block['title'] === 'string' ? block['title'] : undefined
  const named = title === undefined ? {} : { name: title }
  switch (source['type']) {
    case 'base64':
      return [{ kind: 'media', source: inline(source, at), ...named, ...cache }]
    case 'url': {
      const url = text(source, 'url', at)
      return [
        { kind: 'media', source: { kind: 'url', url, mediaType: 'application/pdf' }, ...named, ...cache },
      ]
    }
    case 'text': {
      const pieces = [title, block['context'], text(source, 'data', at)]
      return [{ kind: 'text', text: pieces.filter((p) => typeof p === 'string').join('\n\n'), ...cache }]
    }
    case 'content':
      return decodeContentSource(source['content'], `${at}.content`).map((part, i, all) =>
        i === all.length - 1 ? { ...part, ...cache } : part,
      )
    default:
      return refuse(
        `${at}.type`,
        `'base64', 'url', 'text' or 'content'`,
        'a source that only its provider can read',
      )
  }
}

function decodeContentSource(content: unknown, path: string): (TextPart | MediaPart)[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }]
  if (!Array.isArray(content)) return refuse(path, 'a string or an array of blocks', 'something else')
  return content.map((item, i) => {
    const block = asRecord(item)
    const at = `${path}[${i}]`
    if (block?.['type'] === 'image') return decodeImage(block, at)
    if (block?.['type'] !== 'text') return refuse(`${at}.type`, `'text' or 'image'`, 'something else')
    return { kind: 'text', text: text(block, 'text', at), ...readCache(block, at) }
  })
}

function inline(source: Block, path: string): MediaPart['source'] {
  const type = source['media_type']
  return {
    kind: 'inline',
    mediaType: typeof type === 'string' && type !== '' ? type : UNKNOWN_TYPE,
    data: text(source, 'data', path),
  }
}

function sourceOf(block: Block, path: string): Block {
  return asRecord(block['source']) ?? refuse(`${path}.source`, 'an object', 'something else')
}
