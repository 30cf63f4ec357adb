import { z } from 'zod'
import { decimalText } from '../../domain/decimal.ts'
import type { Group } from '../../domain/records/group.ts'
import type { Settings } from '../../domain/settings.ts'
import type { User } from '../../domain/records/user.ts'

/** Groups by name, with their price ratios. */
export const groupsSchema = z.record(z.string(), z.object({ ratio: z.number(), desc: z.string() }))

/** The groups that a token of this user may name: open ones, and the user's own. */
export function usableGroups({ groups }: Settings, user: User): Group[] {
  return [...groups.values()].filter(({ name, open }) => open || name === user.group)
}

/** The usable groups in responses. */
export function usableGroupsObject(settings: Settings, user: User): z.output<typeof groupsSchema> {
  return Object.fromEntries(
    usableGroups(settings, user).map(({ name, ratio }) => [
      name,
      { ratio: Number(decimalText(ratio)), desc: name },
    ]),
  )
}
