import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { ParsedDocument } from './document.ts'
import { pathText } from './diagnostics.ts'
import { child, items, keys, type YamlNode, UnresolvedScalar, YamlScalar } from './yaml-node.ts'

const PREFIX = 'file:'
/** Bytes that a file with a key may have: far more than any has. */
const MAX_BYTES = 64 * 1024

/**
 * Reads the files that keys of channels name with `file:PATH`, relative to `folder`. Keys set over HTTP never
 * name files: only the operator's own file passes here.
 */
export function withKeyFiles(document: ParsedDocument, folder: string): ParsedDocument {
  const diagnostics = [...document.diagnostics]
  const channels = items(child(document.tree, 'channels')).map((channel, index): YamlNode => {
    const given = items(child(channel, 'keys'))
    if (!given.some((key) => pathOf(key) !== undefined)) return channel
    const read = given.map((key, position): YamlNode => {
      const path = pathOf(key)
      if (path === undefined) return key
      const content = contentOf(resolve(folder, path))
      if ('text' in content) return new YamlScalar(content.text, PREFIX)
      const at = ['channels', index, 'keys', position]
      const message = `expected a file that can be read: ${content.reason}`
      diagnostics.push({ line: document.lineOf(at), path: pathText(at), message })
      return new UnresolvedScalar(PREFIX)
    })
    return replaced(channel, 'keys', read)
  })
  if (channels.length === 0) return document
  return { ...document, tree: replaced(document.tree, 'channels', channels), diagnostics }
}

function pathOf(key: YamlNode): string | undefined {
  const text = key instanceof YamlScalar && typeof key.value === 'string' ? key.value : ''
  return text.startsWith(PREFIX) ? text.slice(PREFIX.length) : undefined
}

function contentOf(file: string): { readonly text: string } | { readonly reason: string } {
  try {
    const text = readFileSync(file, 'utf8')
    return text.length > MAX_BYTES ? { reason: `it has more than ${MAX_BYTES} bytes` } : { text }
  } catch (error) {
    return { reason: error instanceof Error ? error.message : String(error) }
  }
}

function replaced(tree: YamlNode, key: string, value: YamlNode): YamlNode {
  const mapping: Record<string, YamlNode> = Object.create(null)
  for (const name of keys(tree)) mapping[name] = name === key ? value : child(tree, name)
  return mapping
}
