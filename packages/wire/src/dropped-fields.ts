import type { Dropped } from './codec.ts'
import { asRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { reroutingMemberName } from './upstream-settings.ts'

/** Whether a value means something else than leaving the field out. */
export type IsMeaningful = (value: unknown) => boolean

export const isAnyValue: IsMeaningful = () => true
export const isNotFalse: IsMeaningful = (value) => value !== false
export const isNotEmpty: IsMeaningful = (value) =>
  Array.isArray(value) ? value.length > 0 : Object.keys(asRecord(value) ?? {}).length > 0
export const isNotDefault =
  (...defaults: readonly string[]): IsMeaningful =>
  (value) =>
    !defaults.includes(value as string)

/**
 * Reports the top-level fields of a request that a conversion ignores, if their values matter. `read`
 * contains the fields that it uses. `known` contains the fields that are reported by name; all others are
 * reported as `unknown`.
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
    if (!isMeaningful) dropped.add(reroutingMemberName(key) ?? 'unknown')
    else if (isMeaningful(scan.value(key))) dropped.add(key)
  }
}
