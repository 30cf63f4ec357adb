import { dirname, resolve } from 'node:path'
import { databaseWarning, sqlitePath } from '../domain/database-url.ts'
import type { DeclaredFile } from '../domain/declared-file.ts'
import { isSameListenAddress, parseListenAddress } from '../domain/listen-address.ts'
import type { Channel } from '../domain/records/channel.ts'
import { declaredSettingsWithLines } from './declared-lines.ts'
import { type ConfigFileContent, readFileContent } from './read-sections.ts'
import { ConfigError, type Diagnostic, type Path, pathText } from './diagnostics.ts'
import { displayPath } from './display-path.ts'
import { type DocumentDiagnostic, type ParsedDocument, parseYamlDocument } from './document.ts'
import type { Environment } from './environment.ts'
import type { BuiltInPrices } from './built-in-prices.ts'
import { type PriceFile, priceList, readPriceFile } from './price-file.ts'
import { settingsOf, type VendorChannels, vendorChannels } from './settings.ts'
import { isMissing, readTextFile, unreadable } from './text-file.ts'
import { findWarnings } from './warnings.ts'
import {
  childOfNode,
  itemsOfNode,
  keysOfNode,
  UnresolvedScalar,
  type YamlNode,
  YamlScalar,
} from './yaml-node.ts'

/** The texts of the configuration files that the operator writes. */
export interface FileTexts {
  /** The text of gateway.yaml; empty if there is no file. */
  readonly text: string
  /** The text of the prices file; undefined if `options.prices_file` names none. */
  readonly prices?: string | undefined
}

/** The result of reading a valid configuration file. */
export interface ConfigFileReading {
  /** The text of the file; empty if there is none. */
  readonly text: string
  readonly priceFile: PriceFile | undefined
  readonly content: ConfigFileContent
  /**
   * The file's channels, otherwise those made from vendor keys in the environment. Patterns in `models` are
   * replaced by names.
   */
  readonly channels: readonly Channel[]
  /** The file without its users. There may be very many users, and they are merged only in the database. */
  readonly tree: YamlNode
  /** The settings that the file declares, with line numbers, to be shown in the console. */
  readonly declared: DeclaredFile
  readonly warnings: readonly Diagnostic[]
  readonly environmentChannels: VendorChannels
}

/**
 * Reads and checks the configuration file and the prices file that it names, or the texts in `given` instead.
 * Throws a ConfigError that contains every error.
 */
export function readFile(
  environment: Environment,
  builtIn: BuiltInPrices,
  given?: FileTexts,
): ConfigFileReading {
  const { configFile } = environment
  const file = configFile === undefined ? 'environment' : displayPath(configFile)
  const text = given?.text ?? contentOf(configFile, file)
  const parsed = parseYamlDocument(text, (name) => environment.variables.get(name))
  const document = readKeysFromFiles(parsed, dirname(configFile ?? ''))
  const { content, diagnostics } = readFileContent(document)
  if (!content) {
    const inOrder = diagnostics.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0))
    throw new ConfigError(
      inOrder.map((diagnostic) => inFile(file, diagnostic)),
      document.unread,
    )
  }

  const { models, users, options } = content
  const unfit = settingsUnfitFor(environment, content)
  if (unfit.length > 0)
    throw new ConfigError(
      unfit.map(({ path, message }) =>
        inFile(file, { line: document.lineOf(path), path: pathText(path), message }),
      ),
    )
  const place = ['options', 'prices_file']
  const name = childOfNode(childOfNode(document.tree, 'options'), 'prices_file')
  const named = { file, line: document.lineOf(place), path: pathText(place), name }
  const priceFile = readPriceFile(options.prices_file, environment, named, given?.prices)
  const prices = priceList(builtIn, priceFile)
  const environmentChannels = vendorChannels(
    content.channels.length > 0 ? new Map() : environment.vendorKeys,
    prices,
  )
  const declared = [...content.channels, ...environmentChannels.channels]
  const settings = settingsOf(content, declared, environmentChannels, prices)
  const found = findWarnings(settings, models, users, { prices, builtIn }, document.tree).map(
    ({ path, message }) => {
      const diagnostic = { path: pathText(path), message }
      return inFile(
        file,
        configFile === undefined ? diagnostic : { line: document.lineOf(path), ...diagnostic },
      )
    },
  )
  const { channels } = settings
  return {
    text,
    priceFile,
    content,
    channels,
    tree: withoutUsers(document.tree),
    declared: declaredSettingsWithLines(document, configFile),
    warnings: [...environmentWarnings(environment), ...found, ...(priceFile?.warnings ?? [])],
    environmentChannels,
  }
}

const WITHOUT_BUCKET_KEY =
  'expected the environment variables AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to be set'

/** The settings that do not fit the environment variables. */
function settingsUnfitFor(
  { databaseUrl, bucketKey, host, port }: Environment,
  { options, contentLog }: ConfigFileContent,
): readonly { readonly path: Path; readonly message: string }[] {
  const admin = parseListenAddress(options.admin_listen)
  return [
    admin &&
      isSameListenAddress(admin, { host, port }) && {
        path: ['options', 'admin_listen'],
        message: 'expected another address than that of HOST and PORT',
      },
    options.reuse_port &&
      sqlitePath(databaseUrl) !== undefined && {
        path: ['options', 'reuse_port'],
        message: 'expected false: only nodes on PostgreSQL (DATABASE_URL) can share a port',
      },
    contentLog.store.kind === 's3' &&
      !bucketKey && { path: ['content_log', 'store'], message: WITHOUT_BUCKET_KEY },
    options.files.store.kind === 's3' &&
      !bucketKey && { path: ['options', 'files', 'store'], message: WITHOUT_BUCKET_KEY },
  ].filter((one) => typeof one === 'object')
}

function environmentWarnings({ databaseUrl }: Environment): readonly Diagnostic[] {
  const message = sqlitePath(databaseUrl) === undefined ? databaseWarning(databaseUrl) : undefined
  return message === undefined ? [] : [{ file: 'environment', path: 'DATABASE_URL', message }]
}

function withoutUsers(tree: YamlNode): YamlNode {
  if (childOfNode(tree, 'users') === undefined) return tree
  const others: Record<string, YamlNode> = Object.create(null)
  for (const key of keysOfNode(tree)) if (key !== 'users') others[key] = childOfNode(tree, key)
  return others
}

function inFile(file: string, diagnostic: DocumentDiagnostic): Diagnostic {
  return { file, ...diagnostic }
}

function contentOf(file: string | undefined, name: string): string {
  if (file === undefined) return ''
  try {
    return readTextFile(file)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new ConfigError([{ file: name, path: '', message: `expected a file that can be read: ${reason}` }])
  }
}

const PREFIX = 'file:'

/** Maximum size in bytes of a file with a key; real ones are far smaller. */
const MAX_BYTES = 64 * 1024

/**
 * Replaces `file:PATH` in channel keys and in client secrets of identity providers by the content of that
 * file; PATH is relative to `folder`. Only the operator's own file is processed here, so keys set over HTTP
 * never name files.
 */
export function readKeysFromFiles(
  document: ParsedDocument,
  folder: string,
): ParsedDocument & Pick<ConfigError, 'unread'> {
  const diagnostics: DocumentDiagnostic[] = []
  const unread: string[] = []
  const read = (node: YamlNode, at: Path): YamlNode => {
    const path = pathOf(node)
    if (path === undefined) return node
    const file = resolve(folder, path)
    const content = keyFileContent(file, node)
    if ('text' in content) return new YamlScalar(content.text, PREFIX)
    diagnostics.push({ line: document.lineOf(at), path: pathText(at), message: content.mistake })
    if (content.isMissing) unread.push(file)
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
  return { ...document, tree, diagnostics: [...document.diagnostics, ...diagnostics], unread }
}

// Removes the newline that editors put at the end of a file; a secret has only one line.
function trimmed(node: YamlNode): YamlNode {
  return node instanceof YamlScalar && node.source === PREFIX
    ? new YamlScalar(String(node.value).trimEnd(), PREFIX)
    : node
}

function pathOf(key: YamlNode): string | undefined {
  const text = key instanceof YamlScalar && typeof key.value === 'string' ? key.value : ''
  return text.startsWith(PREFIX) ? text.slice(PREFIX.length) : undefined
}

function keyFileContent(
  file: string,
  name: YamlNode,
): { readonly text: string } | { readonly mistake: string; readonly isMissing: boolean } {
  try {
    const text = readTextFile(file)
    if (text.length > MAX_BYTES) throw new Error(`it has more than ${MAX_BYTES} bytes`)
    return { text }
  } catch (error) {
    return { mistake: unreadable(error, name), isMissing: isMissing(error) }
  }
}

function eachItem(node: YamlNode, change: (item: YamlNode, index: number) => YamlNode): YamlNode {
  return Array.isArray(node) ? itemsOfNode(node).map(change) : node
}

/** A mapping with its entry `key` replaced; any other node unchanged. */
function changed(node: YamlNode, key: string, change: (value: YamlNode) => YamlNode): YamlNode {
  if (!keysOfNode(node).includes(key)) return node
  const mapping: Record<string, YamlNode> = Object.create(null)
  for (const name of keysOfNode(node))
    mapping[name] = name === key ? change(childOfNode(node, name)) : childOfNode(node, name)
  return mapping
}
