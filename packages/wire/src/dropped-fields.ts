import type { Dropped } from './codec.ts'
import { asRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { reroutingName } from './upstream-settings.ts'

/** Reports whether a value has another effect than leaving out the field. */
export type IsMeaningful = (value: unknown) => boolean

export const isAnyValue: IsMeaningful = () => true
export const isNotFalse: IsMeaningful = (value) => value !== false
export const isNotEmpty: IsMeaningful = (value) =>
  Array.isArray(value) ? value.length > 0 : Object.keys(asRecord(value) ?? {}).length > 0
export const isOtherThan =
  (...defaults: readonly string[]): IsMeaningful =>
  (value) =>
    !defaults.includes(value as string)

/**
 * Reports the top-level fields that a conversion drops: all except those in `read`, unless their values have
 * no effect. Only names in `known` are reported by name, other fields as `unknown`.
 */
export function reportDroppedFields(
  scan: ScannedObject,
  dropped: Dropped,
  read: ReadonlySet<string>,
  known: ReadonlyMap<string, IsMeaningful>,
): void {
  for (const { key, node } of scan.members.values()) {
    if (read.has(key) || scan.kindOf(node) === 'null') continue
    const isMeaningful = known.get(key)
    if (!isMeaningful) dropped.add(reroutingName(key) ?? 'unknown')
    else if (isMeaningful(scan.value(key))) dropped.add(key)
  }
}
