import type { GatewayOption } from '../../api/options.ts'

/** The typed values of a group. */
export interface GroupFormValues {
  readonly name: string
  /** The factor by which prices are multiplied for the group, as a decimal text. */
  readonly ratio: string
  readonly isOpen: boolean
}

/**
 * The groups, read from two options of the gateway: the ratios by group, and the names of groups that are
 * open to users.
 */
export function groupsInOptions(options: readonly GatewayOption[]): readonly GroupFormValues[] {
  const valueOf = (wanted: string): string => options.find(({ key }) => key === wanted)?.value ?? '{}'
  const open = JSON.parse(valueOf('UserUsableGroups')) as object
  // Ratios are read as texts, so that no digit is lost.
  return [...valueOf('GroupRatio').matchAll(/("(?:[^"\\]|\\.)*")\s*:\s*([\d.]+)/g)].map(
    ([, name = '""', ratio = '1']) => {
      const plain = JSON.parse(name) as string
      return { name: plain, ratio, isOpen: plain in open }
    },
  )
}

/**
 * The options, with their new values, that must be set to save the changed groups. Ratios come first, because
 * only a known group can be open to users.
 */
export function changedGroupOptions(
  now: readonly GroupFormValues[],
  before: readonly GroupFormValues[],
): readonly (readonly [string, string])[] {
  const named = now.filter(({ name }) => name.trim() !== '')
  const ratios = ratiosText(named)
  const open = openText(named)
  return [
    ...(ratios === ratiosText(before) ? [] : [['GroupRatio', ratios] as const]),
    ...(open === openText(before) ? [] : [['UserUsableGroups', open] as const]),
  ]
}

function ratiosText(groups: readonly GroupFormValues[]): string {
  return `{${groups.map(({ name, ratio }) => `${JSON.stringify(name.trim())}:${ratio.trim()}`).join(',')}}`
}

function openText(groups: readonly GroupFormValues[]): string {
  const open = groups.filter(({ isOpen }) => isOpen).map(({ name }) => name.trim())
  return JSON.stringify(Object.fromEntries(open.map((name) => [name, name])))
}
