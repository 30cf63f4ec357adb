import { hash } from 'node:crypto'
import type { Settings } from '../../domain/settings.ts'

const VERSIONS = new WeakMap<Settings, string>()

/**
 * Text that identifies everything in the configuration on which an answer may depend: channels, models,
 * groups and options. Equal configurations have the same version, on every node and after a restart. It is
 * derived from provider keys, so it must be used only as part of an HMAC.
 */
export function configurationVersion(settings: Settings): string {
  let version = VERSIONS.get(settings)
  if (version === undefined) {
    const { options, groups, models, channels, priceVersion } = settings
    const declared = models.declared.toSorted().map((name) => models.get(name))
    version = hash('sha256', JSON.stringify([priceVersion, options, groups, declared, channels], sorted))
    VERSIONS.set(settings, version)
  }
  return version
}

/** Converts values that JSON lacks, and sorts the members of objects by name. */
function sorted(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (value instanceof Set) return [...value].toSorted((one, other) => (one < other ? -1 : 1))
  if (value instanceof Map) return [...value].toSorted(([one], [other]) => (one < other ? -1 : 1))
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
