import type { Json } from '../domain/json.ts'
import { requireVersion, versionOf } from '../domain/object-version.ts'
import type { Settings, StoredConfiguration, StoredSection } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import { repeatIfChanged } from './expected-version.ts'
import type { AdministrationServices } from './services.ts'

/** A list of gateway.yaml to which entries with names can be added over HTTP. */
export interface NamedSection<Entry extends { readonly name: string }> {
  readonly section: Extract<StoredSection, 'guards' | 'mcp_servers' | 'mcp_toolsets'>
  /** What messages call an entry. */
  readonly noun: string
  /** Maximum number of entries that can be added over HTTP. */
  readonly maximum: number
  /** The entries in effect, those of gateway.yaml included. */
  readonly entriesOf: (settings: Settings) => readonly Entry[]
  /** All settings of an entry, as JSON from which its version is made. */
  readonly content: (entry: Entry) => unknown
}

type Services = Pick<AdministrationServices, 'store' | 'liveConfig' | 'settings'>

/** The values of the entries of a section that are stored, by name. */
export function storedValues(
  { entries }: StoredConfiguration,
  { section }: Pick<NamedSection<never>, 'section'>,
): ReadonlyMap<string, Json> {
  return new Map(entries.flatMap((one) => (one.section === section ? [[one.name, one.value]] : [])))
}

/** By whom an entry is managed, and its version. `stored` is its stored value; undefined if gateway.yaml declares it. */
export function managedFields<Entry extends { readonly name: string }>(
  { content }: NamedSection<Entry>,
  entry: Entry,
  stored: Json | undefined,
): { managed: boolean; managed_by: string; version: string } {
  return {
    managed: stored === undefined,
    managed_by: stored === undefined ? 'gateway.yaml' : '',
    // Another node may have stored a value that this node has not read yet.
    version: versionOf([content(entry), stored]),
  }
}

/** Adds an entry in the form of gateway.yaml. Throws `invalid_request` if there is one of this name. */
export function addNamedEntry<Entry extends { readonly name: string }>(
  services: Services,
  section: NamedSection<Entry>,
  name: string,
  value: () => Json,
): Promise<void> {
  return setNamedEntry(services, section, name, undefined, (present) => {
    if (present)
      throw new GatewayError('invalid_request', `name: there is a ${section.noun} "${name}" already`)
    return value()
  })
}

/**
 * Replaces an entry that was added over HTTP with what `next` makes of it, in the form of gateway.yaml; undefined
 * removes it. Throws `changed_meanwhile` if it has another version than the given one.
 */
export function changeNamedEntry<Entry extends { readonly name: string }>(
  services: Services,
  section: NamedSection<Entry>,
  { name, version: given }: { readonly name: string; readonly version: unknown },
  next: (present: Entry) => Json | undefined,
): Promise<void> {
  // A version of another type is that of no entry.
  const version = given === undefined || given === null ? undefined : typeof given === 'string' ? given : ''
  return setNamedEntry(services, section, name, version, (present, stored) => {
    if (!present) throw new GatewayError('not_found', `there is no ${section.noun} "${name}"`)
    const { managed, version: now } = managedFields(section, present, stored)
    if (managed)
      throw new GatewayError(
        'managed_by_file',
        `this ${section.noun} is set in gateway.yaml, and can be changed there alone`,
      )
    requireVersion(version, now)
    return next(present)
  })
}

// The stored value is compared again when it is written, because another node may have changed it meanwhile.
function setNamedEntry<Entry extends { readonly name: string }>(
  { store, settings, liveConfig }: Services,
  { section, noun, maximum, entriesOf }: NamedSection<Entry>,
  name: string,
  version: string | undefined,
  next: (present: Entry | undefined, stored: Json | undefined) => Json | undefined,
): Promise<void> {
  return repeatIfChanged(version, () => {
    let before: Json | undefined
    let value: Json | undefined
    return liveConfig.change(
      (stored) => {
        before = storedValues(stored, { section }).get(name)
        value = next(
          entriesOf(settings()).find((one) => one.name === name),
          before,
        )
        const others = stored.entries.filter((one) => one.section !== section || one.name !== name)
        if (value === undefined) return { ...stored, entries: others }
        if (others.filter((one) => one.section === section).length >= maximum)
          throw new GatewayError('invalid_request', `expected at most ${maximum} ${noun}s`)
        return { ...stored, entries: [...others, { section, name, value }] }
      },
      () =>
        store.write('setStoredSettings', {
          changes: [{ section, name, value }],
          expected: [{ section, name, value: before }],
        }),
    )
  })
}
