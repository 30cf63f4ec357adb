import type { Json } from '../domain/json.ts'
import { requireVersion } from '../domain/object-version.ts'
import type { StoredSection } from '../domain/settings.ts'
import { GatewayError } from '../errors.ts'
import type { AdministrationServices } from './services.ts'

/** A list of gateway.yaml to which entries with names can be added over HTTP. */
export interface NamedSection {
  readonly section: Extract<StoredSection, 'guards' | 'mcp_servers' | 'mcp_toolsets'>
  /** What messages call an entry. */
  readonly noun: string
  /** Maximum number of entries that can be added over HTTP. */
  readonly maximum: number
}

/** Stores an entry in the form of gateway.yaml, or removes it if `value` is undefined. */
export async function setNamedEntry(
  { store, liveConfig }: Pick<AdministrationServices, 'store' | 'liveConfig'>,
  { section, noun, maximum }: NamedSection,
  name: string,
  value: Json | undefined,
): Promise<void> {
  const change = { section, name, value }
  await liveConfig.change(
    (stored) => {
      const others = stored.entries.filter((one) => one.section !== section || one.name !== name)
      if (value === undefined) return { ...stored, entries: others }
      if (others.filter((one) => one.section === section).length >= maximum)
        throw new GatewayError('invalid_request', `expected at most ${maximum} ${noun}s`)
      return { ...stored, entries: [...others, { section, name, value }] }
    },
    () => store.write('setStoredSettings', { changes: [change] }),
  )
}

/** Throws if gateway.yaml declares an entry, or if it has been changed since the client read this version of it. */
export function requireChangeable(
  { noun }: NamedSection,
  present: { readonly managed: boolean; readonly version: string },
  version: unknown,
): void {
  if (present.managed)
    throw new GatewayError(
      'managed_by_file',
      `this ${noun} is set in gateway.yaml, and can be changed there alone`,
    )
  requireVersion(typeof version === 'string' ? version : undefined, present.version)
}
