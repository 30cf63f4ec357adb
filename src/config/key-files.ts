import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { DocumentDiagnostic, ParsedDocument } from './document.ts'
import { type Path, pathText } from './diagnostics.ts'
import { child, items, keys, type YamlNode, UnresolvedScalar, YamlScalar } from './yaml-node.ts'

const PREFIX = 'file:'
/** Maximum size of a file with a key, far above any real one. */
const MAX_BYTES = 64 * 1024

/**
 * Reads the files that keys of channels and client secrets of identity providers name with `file:PATH`,
 * relative to `folder`. Keys set over HTTP never name files, because only the operator's own file is
 * processed here.
 */
export function withKeyFiles(document: ParsedDocument, folder: string): ParsedDocument {
  const diagnostics: DocumentDiagnostic[] = []
  const read = (node: YamlNode, at: Path): YamlNode => {
    const path = pathOf(node)
    if (path === undefined) return node
    const content = contentOf(resolve(folder, path))
    if ('text' in content) return new YamlScalar(content.text, PREFIX)
    const message = `expected a file that can be read: ${content.reason}`
    diagnostics.push({ line: document.lineOf(at), path: pathText(at), message })
    return new UnresolvedScalar(PREFIX)
  }
  const channelRead = (channel: YamlNode, at: Path): YamlNode =>
    changed(channel, 'keys', (given) =>
      eachItem(given, (key, position) => read(key, [...at, 'keys', position])),
    )
  const providerRead = (provider: YamlNode, at: Path): YamlNode =>
    changed(provider, 'client_secret', (given) => trimmed(read(given, [...at, 'client_secret'])))
  const channels = changed(document.tree, 'channels', (given) =>
    eachItem(given, (channel, index) => channelRead(channel, ['channels', index])),
  )
  const tree = changed(channels, 'login', (login) =>
    changed(login, 'oidc', (given) =>
      eachItem(given, (provider, index) => providerRead(provider, ['login', 'oidc', index])),
    ),
  )
  return { ...document, tree, diagnostics: [...document.diagnostics, ...diagnostics] }
}

// A secret is one line, but editors end the file with a newline.
function trimmed(node: YamlNode): YamlNode {
  return node instanceof YamlScalar && node.source === PREFIX
    ? new YamlScalar(String(node.value).trimEnd(), PREFIX)
    : node
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

function eachItem(node: YamlNode, change: (item: YamlNode, index: number) => YamlNode): YamlNode {
  return Array.isArray(node) ? items(node).map(change) : node
}

/** A mapping with its entry `key` replaced; any other node unchanged. */
function changed(node: YamlNode, key: string, change: (value: YamlNode) => YamlNode): YamlNode {
  if (!keys(node).includes(key)) return node
  const mapping: Record<string, YamlNode> = Object.create(null)
  for (const name of keys(node)) mapping[name] = name === key ? change(child(node, name)) : child(node, name)
  return mapping
}
