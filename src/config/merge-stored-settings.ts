import { declaredId } from '../domain/channel-id.ts'
import { pointsToMetadataAddress } from '../domain/metadata-address.ts'
import { type Price, priceAsJson } from '../domain/price.ts'
import { priceFromRatios, readRatios } from '../domain/ratios.ts'
import type { Guard } from '../domain/guard.ts'
import type { Channel } from '../domain/records/channel.ts'
import { asObject, type Json, type JsonObject } from '../domain/json.ts'
import type { ApprovedTool } from '../domain/mcp.ts'
import type { Settings, StateSection, StoredConfiguration, StoredSection } from '../domain/settings.ts'
import { invalidInput } from '../errors.ts'
import type { Config } from './config.ts'
import { priceSchema } from './prices.ts'
import { readSections } from './read-sections.ts'
import { type Path, pathText } from './diagnostics.ts'
import { deepFreeze } from './deep-freeze.ts'
import { type Issue, issuesOf } from './fields.ts'
import { guardSchema } from './guards.ts'
import { invisibleNames, unlistableNames } from './invisible-names.ts'
import { replaceModelPatterns } from './model-patterns.ts'
import { settingsOf } from './settings.ts'
import { childOfNode, isMapping, itemsOfNode, keysOfNode, type YamlNode, YamlScalar } from './yaml-node.ts'

/** A setting that was set over HTTP and conflicts with the file. */
export interface IgnoredStoredSetting {
  /** The section that contains the entry; `name` is unique in it. */
  readonly section: 'channels' | Exclude<StoredSection, StateSection>
  readonly name: string
  readonly message: string
  /** Value of the ignored setting as JSON, to detect changes. */
  readonly content: string
}

/** The settings of the file merged with those set over HTTP. */
export interface MergedSettings {
  readonly settings: Settings
  /** The channels set over HTTP by name, enabled or disabled. */
  readonly storedChannels: ReadonlyMap<string, Channel>
  /** Ids of channels that are drained, which means that they get no new calls. */
  readonly drained: ReadonlySet<number>
  readonly ignored: readonly IgnoredStoredSetting[]
}

/**
 * Merges the settings changed over HTTP with the file; the file takes precedence. The same schemas check
 * both, and stored entries that they refuse are ignored. With `before`, `stored` is a change of it, in which new
 * names with invisible characters, or that a list cannot repeat, are refused as well; names that were stored earlier stay
 * in use.
 */
export function mergeStoredSettings(
  config: Config,
  stored: StoredConfiguration,
  before?: StoredConfiguration,
): MergedSettings {
  if (stored.channels.length === 0 && stored.entries.length === 0) return fileOnly(config)
  const ignored: IgnoredStoredSetting[] = []
  const drained = drainedIds(stored)
  const namesBefore = new Set(
    before &&
      storedLayer(config, before)
        .flatMap(unfitNamesOf)
        .map(({ name }) => name),
  )
  const newName = (one: LayerEntry): string | undefined =>
    before && unfitNamesOf(one).find(({ name }) => !namesBefore.has(name))?.message
  let entries = storedLayer(config, stored).filter((one) => {
    const message = conflictOf(config, one) ?? newName(one)
    if (message !== undefined) ignored.push(ignoredEntry(one, message))
    return message === undefined
  })
  for (;;) {
    const { content, issues } = readSections(mergedNode(config.fileNode, entries))
    if (content && issues.length === 0)
      return withMcpState(
        { ...settingsFrom(config, content, entries, drainTest(stored, drained)), drained, ignored },
        stored,
      )
    const faulty = faultyEntries(config.fileNode, entries, issues)
    // No stored entry causes the errors. This cannot happen if the file is valid by itself.
    if (faulty.size === 0)
      return withMcpState(
        { ...fileOnly(config), drained, ignored: entries.map((one) => ignoredEntry(one, 'not read')) },
        stored,
      )
    for (const [one, message] of faulty) ignored.push(ignoredEntry(one, message))
    entries = entries.filter((one) => !faulty.has(one))
  }
}

/** Adds what was approved, and whether there has been a toolset. */
function withMcpState(merged: MergedSettings, { entries }: StoredConfiguration): MergedSettings {
  const approved = new Map(
    entries.flatMap(({ section, name, value }): [string, ApprovedTool][] => {
      if (section !== 'mcp_tools') return []
      const { digest, definition } = asObject(value)
      return typeof digest === 'string' ? [[name, { digest, definition: asObject(definition ?? null) }]] : []
    }),
  )
  const hadToolsets = entries.some(({ section }) => section === 'mcp_state')
  if (approved.size === 0 && !hadToolsets) return merged
  const { settings } = merged
  const isRestricted = hadToolsets || settings.mcp.isRestricted
  return {
    ...merged,
    settings: Object.freeze({ ...settings, mcp: { ...settings.mcp, isRestricted, approved } }),
  }
}

/** Whether the entries of a section are no settings of the file. */
function isState(section: StoredSection): section is StateSection {
  return section === 'drains' || section === 'mcp_tools' || section === 'mcp_state'
}

function fileOnly({ settings }: Config): MergedSettings {
  return { settings, storedChannels: new Map(), drained: new Set(), ignored: [] }
}

/** Returns a function that reports whether a channel is drained. */
function drainTest(
  { channels }: StoredConfiguration,
  drained: ReadonlySet<number>,
): (channel: Channel) => boolean {
  if (drained.size === 0) return () => false
  const stored = new Set(channels.filter(({ id }) => drained.has(id)).map(({ name }) => name))
  return ({ name, isSetOverHttp }) => (isSetOverHttp ? stored.has(name) : drained.has(declaredId(name)))
}

function drainedIds({ entries }: StoredConfiguration): ReadonlySet<number> {
  return new Set(entries.flatMap(({ section, name }) => (section === 'drains' ? [Number(name)] : [])))
}

/** The reason to ignore a stored entry even before its value is checked; undefined if there is none. */
function conflictOf(
  { fileNode, environmentChannels }: Config,
  { section, name, tree }: LayerEntry,
): string | undefined {
  if (section === 'channels') {
    const isDeclared =
      environmentChannels.channels.some((one) => one.name === name) ||
      itemsOfNode(childOfNode(fileNode, 'channels')).some((one) => isText(childOfNode(one, 'name'), name))
    if (isDeclared) return 'the configuration declares a channel of that name'
    const named = ['base_url', 'proxy'].find((key) => {
      const url = childOfNode(tree, key)
      return url instanceof YamlScalar && pointsToMetadataAddress(String(url.value))
    })
    return named && `${named}: expected another address than that of a cloud's metadata service`
  }
  if (isListed(section)) {
    const isDeclared = itemsAt(fileNode, section).some((one) => isText(childOfNode(one, 'name'), name))
    return isDeclared ? `the configuration file declares a ${LISTS[section].noun} of that name` : undefined
  }
  return isDeclaredSetting(fileNode, section, name) ? 'the configuration file overrides it' : undefined
}

function isText(tree: YamlNode, text: string): boolean {
  return tree instanceof YamlScalar && String(tree.value) === text
}

function mergedNode(file: YamlNode, entries: readonly LayerEntry[]): YamlNode {
  const under = (key: 'options' | 'groups' | 'models'): YamlNode => {
    const mapping: Record<string, YamlNode> = Object.create(null)
    for (const { section, name, tree } of entries) {
      if (isListed(section) || SECTION_KEYS[section] !== key) continue
      // A model's price and its other settings are separate stored entries, which are combined here.
      const before = mapping[name]
      mapping[name] = isMapping(before) && isMapping(tree) ? { ...before, ...tree } : tree
    }
    const declared = childOfNode(file, key)
    for (const name of keysOfNode(declared)) mapping[name] = childOfNode(declared, name)
    return mapping
  }
  const withStored = (list: ListSection): YamlNode[] => [
    ...itemsAt(file, list),
    ...entries.filter(({ section }) => section === list).map(({ tree }) => tree),
  ]
  return {
    options: under('options'),
    rate_limits: childOfNode(file, 'rate_limits'),
    login: childOfNode(file, 'login'),
    alerts: withStored('alerts'),
    guards: withStored('guards'),
    content_log: childOfNode(file, 'content_log'),
    mcp: { servers: withStored('mcp_servers'), toolsets: withStored('mcp_toolsets') },
    groups: under('groups'),
    models: under('models'),
    channels: withStored('channels'),
  }
}

function settingsFrom(
  { fileNode, environmentChannels, prices }: Config,
  content: NonNullable<ReturnType<typeof readSections>['content']>,
  entries: readonly LayerEntry[],
  isDrained: (channel: Channel) => boolean,
): Pick<MergedSettings, 'settings' | 'storedChannels'> {
  const declared = itemsOfNode(childOfNode(fileNode, 'channels')).length
  const disabled = new Set(entries.filter(({ enabled }) => !enabled).map(({ name }) => name))
  const marked = (one: Channel): Channel => (isDrained(one) ? { ...one, isDrained: true } : one)
  const fromFile = [...content.channels.slice(0, declared), ...environmentChannels.channels].map(marked)
  const stored = content.channels
    .slice(declared)
    .map((one): Channel => marked({ ...one, isSetOverHttp: true }))
  const channels = [...fromFile, ...stored.filter(({ name }) => !disabled.has(name))]
  const settings = settingsOf(content, channels, environmentChannels, prices)
  const named = replaceModelPatterns(stored, settings.models, prices)
  return deepFreeze({
    settings,
    storedChannels: new Map(named.map((one) => [one.name, one])),
  })
}

/** The stored entries that cause errors, each with its error messages. */
function faultyEntries(
  file: YamlNode,
  entries: readonly LayerEntry[],
  issues: readonly Issue[],
): ReadonlyMap<LayerEntry, string> {
  const faulty = new Map<LayerEntry, string>()
  for (const { path, message } of issues) {
    const list = LIST_SECTIONS.find((section) => LISTS[section].path.every((step, at) => path[at] === step))
    const [place, which, ...rest] = list ? [list, ...path.slice(LISTS[list].path.length)] : path
    const one = list
      ? entries.filter(({ section }) => section === list)[Number(which) - itemsAt(file, list).length]
      : causeAmong(
          entries.filter(
            ({ section, name }) => !isListed(section) && SECTION_KEYS[section] === place && name === which,
          ),
          rest[0],
        )
    if (!one) continue
    const text = sentence(list ? rest : path, message)
    const before = faulty.get(one)
    faulty.set(one, before === undefined ? text : `${before}; ${text}`)
  }
  return faulty
}

// Of the two entries that a model can have, the later one that states the member is in force.
function causeAmong(
  entries: readonly LayerEntry[],
  member: Path[number] | undefined,
): LayerEntry | undefined {
  return entries.findLast(({ tree }) => keysOfNode(tree).includes(String(member))) ?? entries[0]
}

function sentence(path: Path, message: string): string {
  return path.length === 0 ? message : `${pathText(path)}: ${message}`
}

function ignoredEntry({ section, name, content }: LayerEntry, message: string): IgnoredStoredSetting {
  return { section, name, content, message }
}

/** One setting that was set over HTTP, in the form that it would have in the file. */
interface LayerEntry {
  readonly section: 'channels' | Exclude<StoredSection, StateSection>
  readonly name: string
  /** Value of the setting as JSON, to detect changes. */
  readonly content: string
  readonly tree: YamlNode
  readonly enabled: boolean
}

/** The errors about names that a change may not add in an entry, wherever it stands in the file. */
function unfitNamesOf({ section, name, tree }: LayerEntry) {
  const part = isListed(section) ? { [section]: [tree] } : { [SECTION_KEYS[section]]: { [name]: tree } }
  return [...unlistableNames(part), ...invisibleNames(part)]
}

/** The key in gateway.yaml of each section of stored settings that is a mapping there. */
const SECTION_KEYS = {
  options: 'options',
  groups: 'groups',
  models: 'models',
  ratios: 'models',
} as const

/** Sections of stored settings that are lists in gateway.yaml: where, and what an entry is called. */
const LISTS = {
  channels: { path: ['channels'], noun: 'channel' },
  alerts: { path: ['alerts'], noun: 'receiver' },
  guards: { path: ['guards'], noun: 'guard' },
  mcp_servers: { path: ['mcp', 'servers'], noun: 'server' },
  mcp_toolsets: { path: ['mcp', 'toolsets'], noun: 'toolset' },
} as const

type ListSection = keyof typeof LISTS

const LIST_SECTIONS = Object.keys(LISTS) as ListSection[]

function isListed(section: LayerEntry['section']): section is ListSection {
  return Object.hasOwn(LISTS, section)
}

/** The entries that a file has in a list. */
function itemsAt(file: YamlNode, section: ListSection): readonly YamlNode[] {
  const { path }: { path: readonly string[] } = LISTS[section]
  return itemsOfNode(path.reduce<YamlNode>(childOfNode, file))
}

/** Whether the file declares the setting of a section that is a mapping there. */
export function isDeclaredSetting(file: YamlNode, section: StoredSection, name: string): boolean {
  return (
    !isState(section) &&
    !isListed(section) &&
    keysOfNode(childOfNode(file, SECTION_KEYS[section])).includes(name)
  )
}

/**
 * The settings changed over HTTP, one entry each, as they would be in the file. Price ratios are left out if
 * the model has no known price per prompt token to multiply.
 */
function storedLayer(
  { prices, environmentChannels }: Config,
  { channels, entries }: StoredConfiguration,
): readonly LayerEntry[] {
  const priceOf = (model: string): Price | undefined =>
    prices.get(model, environmentChannels.preferred.get(model))?.price
  return [
    ...channels.map(({ name, declared, keys, status }): LayerEntry => {
      const entry = { ...declared, name, keys }
      const content = JSON.stringify([entry, status])
      return { section: 'channels', name, content, tree: jsonToYaml(entry), enabled: status === 1 }
    }),
    ...entries.flatMap(({ section, name, value }): LayerEntry[] => {
      if (isState(section)) return []
      const entry = section === 'ratios' ? modelOf(value, priceOf(name)) : value
      if (entry === undefined) return []
      return [{ section, name, content: JSON.stringify(value), tree: jsonToYaml(entry), enabled: true }]
    }),
  ]
}

/**
 * A model's entry for an exact price, or for ratios that multiply a base price; undefined if the ratios have
 * no base.
 */
function modelOf(ratios: Json, base: Price | undefined): Json | undefined {
  const { exact } = asObject(ratios)
  if (exact !== undefined) return { price: exact }
  const price = priceFromRatios(readRatios(ratios), base)
  return price && { price: priceAsJson(price) }
}

/**
 * Reads a price in the form that it has in the file. Throws `invalid_request` with the schema's error
 * message.
 */
export function parsePriceSetting(value: Json): Price {
  const { data, error } = priceSchema.safeParse(jsonToYaml(value))
  if (data) return data
  throw invalidInput((error?.issues ?? []).map(({ path, message }) => sentence(path as Path, message)))
}

/**
 * Reads a guard in the form that it has in the file. Throws `invalid_request` with the schema's error
 * message.
 */
export function parseGuardSetting(value: Json): Guard {
  const { data, error } = guardSchema.safeParse(jsonToYaml(value))
  if (data) return data
  throw invalidInput((error ? issuesOf(error) : []).map(({ path, message }) => sentence(path, message)))
}

/**
 * Converts JSON to the tree that the same values in the YAML file would give. Variables are not substituted.
 */
function jsonToYaml(value: Json): YamlNode {
  if (value === null) return undefined
  if (Array.isArray(value)) return (value as readonly Json[]).map(jsonToYaml)
  if (typeof value !== 'object') return new YamlScalar(value)
  const tree: Record<string, YamlNode> = Object.create(null)
  for (const [key, part] of Object.entries(value as JsonObject)) tree[key] = jsonToYaml(part)
  return tree
}
