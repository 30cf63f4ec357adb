import type { Channel } from '../domain/channel.ts'
import { namesMetadataAddress } from '../domain/metadata-address.ts'
import type { Settings } from '../domain/settings.ts'
import type { StoredConfiguration, StoredSection } from '../domain/stored-configuration.ts'
import type { Config } from './config.ts'
import { readSections } from './content.ts'
import { freeze } from './freeze.ts'
import type { Issue } from './issues.ts'
import { type Laid, laidOut, PLACES } from './stored-layer.ts'
import { type Path, pathText } from './diagnostics.ts'
import { settingsOf } from './settings.ts'
import { child, items, keys, type Tree, Written } from './yaml-node.ts'

/** Something that was set over HTTP and cannot be in force beside this file. */
export interface LeftOut {
  /** `channels`, or a section of entries, and the name in it. */
  readonly section: 'channels' | StoredSection
  readonly name: string
  readonly message: string
  /** Tells whether it is the same that was left out before. */
  readonly content: string
}

/** The file and what was set over HTTP, together. */
export interface Overlaid {
  readonly settings: Settings
  /** The channels that were set over HTTP, by name, whether they are enabled or not. */
  readonly stored: ReadonlyMap<string, Channel>
  readonly leftOut: readonly LeftOut[]
}

/**
 * Lays what was set over HTTP under the file: where both say something, the file counts. All of it is read by
 * the schemas of the file; what they refuse is left out.
 */
export function overlay(config: Config, stored: StoredConfiguration): Overlaid {
  if (stored.channels.length === 0 && stored.entries.length === 0) return ofFile(config)
  const leftOut: LeftOut[] = []
  let laid = laidOut(config, stored).filter((one) => {
    const message = overruled(config, one)
    if (message !== undefined) leftOut.push(told(one, message))
    return message === undefined
  })
  for (;;) {
    const { content, issues } = readSections(together(config.tree, laid))
    if (content && issues.length === 0) return { ...inForce(config, content, laid), leftOut }
    const blamed = blame(config.tree, laid, issues)
    // Nothing in particular is to blame, which cannot be while the file is good by itself.
    if (blamed.size === 0) return { ...ofFile(config), leftOut: laid.map((one) => told(one, 'not read')) }
    for (const [one, message] of blamed) leftOut.push(told(one, message))
    laid = laid.filter((one) => !blamed.has(one))
  }
}

function ofFile({ settings }: Config): Overlaid {
  return { settings, stored: new Map(), leftOut: [] }
}

/** What speaks against it before it is read. */
function overruled({ tree, fromKeys }: Config, { section, name, tree: laid }: Laid): string | undefined {
  if (section === 'channels') {
    const taken =
      fromKeys.channels.some((one) => one.name === name) ||
      items(child(tree, 'channels')).some((one) => isText(child(one, 'name'), name))
    if (taken) return 'the configuration declares a channel of that name'
    const url = child(laid, 'base_url')
    return url instanceof Written && namesMetadataAddress(String(url.value))
      ? "base_url: expected another address than that of a cloud's metadata service"
      : undefined
  }
  return keys(child(tree, PLACES[section])).includes(name)
    ? 'the configuration file says otherwise'
    : undefined
}

function isText(tree: Tree, text: string): boolean {
  return tree instanceof Written && String(tree.value) === text
}

function together(file: Tree, laid: readonly Laid[]): Tree {
  const under = (section: StoredSection): Tree => {
    const mapping: Record<string, Tree> = Object.create(null)
    for (const one of laid) if (one.section === section) mapping[one.name] = one.tree
    const declared = child(file, PLACES[section])
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

function inForce(
  { tree, fromKeys, builtIn }: Config,
  content: NonNullable<ReturnType<typeof readSections>['content']>,
  laid: readonly Laid[],
): Pick<Overlaid, 'settings' | 'stored'> {
  const declared = items(child(tree, 'channels')).length
  const disabled = new Set(laid.filter(({ enabled }) => !enabled).map(({ name }) => name))
  const fromFile = [...content.channels.slice(0, declared), ...fromKeys.channels]
  const stored = content.channels.slice(declared).map((one): Channel => ({ ...one, isSetOverHttp: true }))
  const channels = [...fromFile, ...stored.filter(({ name }) => !disabled.has(name))]
  return freeze({
    settings: settingsOf(content, channels, fromKeys, builtIn),
    stored: new Map(stored.map((one) => [one.name, one])),
  })
}

/** What was set over HTTP and issues are about, with the issues in words. */
function blame(file: Tree, laid: readonly Laid[], issues: readonly Issue[]): ReadonlyMap<Laid, string> {
  const blamed = new Map<Laid, string>()
  const declared = items(child(file, 'channels')).length
  const channels = laid.filter(({ section }) => section === 'channels')
  for (const { path, message } of issues) {
    const [place, which, ...rest] = path
    const isChannel = place === 'channels'
    const one = isChannel
      ? channels[Number(which) - declared]
      : laid.find(
          ({ section, name }) => section !== 'channels' && PLACES[section] === place && name === which,
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

function told({ section, name, content }: Laid, message: string): LeftOut {
  return { section, name, content, message }
}
