import type { MediaPart, TextPart } from '../conversation.ts'
import { refuse } from '../field-check.ts'
import { asRecord } from '../json/record.ts'
import { readCache } from './cache-mark.ts'

type Block = Readonly<Record<string, unknown>>

const UNKNOWN_TYPE = 'application/octet-stream'

/**
 * Decodes an `image` block. Throws `invalid_request` naming the error; a file id belongs to another provider.
 */
export function decodeImage(block: Block, path: string): MediaPart {
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
 * Decodes a `document` block: a file is media, text is text below its title and context, and content is its
 * blocks. A cache mark goes on the last part.
 */
export function decodeDocument(block: Block, path: string): readonly (TextPart | MediaPart)[] {
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

function text(holder: Block, key: string, path: string): string {
  const value = holder[key]
  return typeof value === 'string' ? value : refuse(`${path}.${key}`, 'a string', 'something else')
}
