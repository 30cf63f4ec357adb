import type { Channel } from '../domain/channel.ts'
import { namesMetadataAddress } from '../domain/metadata-address.ts'
import type { Settings } from '../domain/settings.ts'
import type { StoredConfiguration, StoredSection } from '../domain/stored-configuration.ts'
import type { Config } from './config.ts'
import { readSections } from './content.ts'
import { freeze } from './freeze.ts'
import type { Issue } from './issues.ts'
import { type LayerEntry, storedLayer, SECTION_KEYS } from './stored-layer.ts'
import { type Path, pathText } from './diagnostics.ts'
import { settingsOf } from './settings.ts'
import { child, items, keys, type YamlNode, YamlScalar } from './yaml-node.ts'

/** Something that was set over HTTP and cannot be in force beside this file. */
export interface IgnoredEntry {
  /** `channels`, or a section of entries, and the name in it. */
  readonly section: 'channels' | StoredSection
  readonly name: string
  readonly message: string
  /** Tells whether it is the same that was left out before. */
  readonly content: string
}

/** The file and what was set over HTTP, together. */
export interface MergedSettings {
  readonly settings: Settings
  /** The channels that were set over HTTP, by name, whether they are enabled or not. */
  readonly storedChannels: ReadonlyMap<string, Channel>
  readonly ignored: readonly IgnoredEntry[]
}

/**
 * Lays what was set over HTTP under the file: where both say something, the file counts. All of it is read by
 * the schemas of the file; what they refuse is left out.
 */
export function mergeLayers(config: Config, stored: StoredConfiguration): MergedSettings {
  if (stored.channels.length === 0 && stored.entries.length === 0) return fileOnly(config)
  const leftOut: IgnoredEntry[] = []
  let laid = storedLayer(config, stored).filter((one) => {
    const message = conflictOf(config, one)
    if (message !== undefined) leftOut.push(ignoredEntry(one, message))
    return message === undefined
  })
  for (;;) {
    const { content, issues } = readSections(mergedNode(config.fileNode, laid))
    if (content && issues.length === 0) return { ...settingsFrom(config, content, laid), ignored: leftOut }
    const blamed = faultyEntries(config.fileNode, laid, issues)
    // Nothing in particular is to blame, which cannot be while the file is good by itself.
    if (blamed.size === 0) return { ...fileOnly(config), ignored: laid.map((one) => ignoredEntry(one, 'not read')) }
    for (const [one, message] of blamed) leftOut.push(ignoredEntry(one, message))
    laid = laid.filter((one) => !blamed.has(one))
  }
}

function fileOnly({ settings }: Config): MergedSettings {
  return { settings, storedChannels: new Map(), ignored: [] }
}

/** What speaks against it before it is read. */
function conflictOf({ fileNode: tree, environmentChannels: fromKeys }: Config, { section, name, tree: laid }: LayerEntry): string | undefined {
  if (section === 'channels') {
    const taken =
      fromKeys.channels.some((one) => one.name === name) ||
      items(child(tree, 'channels')).some((one) => isText(child(one, 'name'), name))
    if (taken) return 'the configuration declares a channel of that name'
    const url = child(laid, 'base_url')
    return url instanceof YamlScalar && namesMetadataAddress(String(url.value))
      ? "base_url: expected another address than that of a cloud's metadata service"
      : undefined
  }
  return keys(child(tree, SECTION_KEYS[section])).includes(name)
    ? 'the configuration file says otherwise'
    : undefined
}

function isText(tree: YamlNode, text: string): boolean {
  return tree instanceof YamlScalar && String(tree.value) === text
}

function mergedNode(file: YamlNode, laid: readonly LayerEntry[]): YamlNode {
  const under = (section: StoredSection): YamlNode => {
    const mapping: Record<string, YamlNode> = Object.create(null)
    for (const one of laid) if (one.section === section) mapping[one.name] = one.tree
    const declared = child(file, SECTION_KEYS[section])
    for (const name of keys(declared)) mapping[name] = child(declared, name)
    return mapping
  }
  return {
    options: under('options'),
    rate_limits: child(file, 'rate_limits'),
    groups: under('groups'),
    models: under('ratios'),
    channels: [
      ...items(child(file, 'channels')),
      ...laid.filter(({ section }) => section === 'channels').map(({ tree }) => tree),
    ],
  }
}

function settingsFrom(
  { fileNode: tree, environmentChannels: fromKeys, builtIn }: Config,
  content: NonNullable<ReturnType<typeof readSections>['content']>,
  laid: readonly LayerEntry[],
): Pick<MergedSettings, 'settings' | 'storedChannels'> {
  const declared = items(child(tree, 'channels')).length
  const disabled = new Set(laid.filter(({ enabled }) => !enabled).map(({ name }) => name))
  const fromFile = [...content.channels.slice(0, declared), ...fromKeys.channels]
  const stored = content.channels.slice(declared).map((one): Channel => ({ ...one, isSetOverHttp: true }))
  const channels = [...fromFile, ...stored.filter(({ name }) => !disabled.has(name))]
  return freeze({
    settings: settingsOf(content, channels, fromKeys, builtIn),
    storedChannels: new Map(stored.map((one) => [one.name, one])),
  })
}

/** What was set over HTTP and issues are about, with the issues in words. */
function faultyEntries(file: YamlNode, laid: readonly LayerEntry[], issues: readonly Issue[]): ReadonlyMap<LayerEntry, string> {
  const blamed = new Map<LayerEntry, string>()
  const declared = items(child(file, 'channels')).length
  const channels = laid.filter(({ section }) => section === 'channels')
  for (const { path, message } of issues) {
    const [place, which, ...rest] = path
    const isChannel = place === 'channels'
    const one = isChannel
      ? channels[Number(which) - declared]
      : laid.find(
          ({ section, name }) => section !== 'channels' && SECTION_KEYS[section] === place && name === which,
        )
    if (!one) continue
    const words = sentence(isChannel ? rest : path, message)
    const before = blamed.get(one)
    blamed.set(one, before === undefined ? words : `${before}; ${words}`)
  }
  return blamed
}

function sentence(path: Path, message: string): string {
  return path.length === 0 ? message : `${pathText(path)}: ${message}`
}

function ignoredEntry({ section, name, content }: LayerEntry, message: string): IgnoredEntry {
  return { section, name, content, message }
}
