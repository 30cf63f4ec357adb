import type { DroppedFields } from './codec.ts'
import { asRecord } from './json/record.ts'
import type { ScannedObject } from './json/scanned-object.ts'
import { reroutingMemberName } from './upstream-settings.ts'

/** Whether a request with this value of a field differs in meaning from a request without the field. */
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
 * Adds the top-level fields of a request that its conversion ignores to `dropped`, unless their values mean
 * the default. `read` are the fields that the conversion uses. `known` are the fields that are reported by
 * name; all others are reported as `unknown`.
 */
export function reportDroppedFields(
  scan: ScannedObject,
  dropped: DroppedFields,
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
