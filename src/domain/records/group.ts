import type { ContentTerms } from '../content-log.ts'
import type { Budget } from '../budget.ts'
import type { Decimal } from '../decimal.ts'
import { flagType, jsonType, listType, nameType } from './field-types.ts'
import { declareRecord, type Values } from './record.ts'

/** Settings of a group other than its budget, as in gateway.yaml: `docs/configuration.md: Groups`. */
export const GROUP_SETTINGS = declareRecord('', {
  /** The group's ratio, which multiplies the prices of its calls. */
  ratio: { type: jsonType<Decimal>(), default: { digits: 1n, scale: 0 }, declared: true },
  /** Any user's token may name an open group. A closed group may be named only by users who belong to it. */
  open: { type: flagType, default: true, declared: true },
  /**
   * Names of guards that check all calls of the group, even if the guards are limited to other groups, models
   * or users.
   */
  guards: { type: listType(nameType(64), 'a list of names of guards'), default: [], declared: true },
})

/** A group of users: the ratio of its prices, and who may choose it. */
export type Group = Values<typeof GROUP_SETTINGS.fields> & {
  readonly name: string
  /**
   * What the content log keeps of the group's calls; if undefined, gateway.yaml's section `content_log`
   * applies.
   */
  readonly contentLog?: ContentTerms | undefined
  /** Budget for all calls that are charged to the group. */
  readonly budget?: Budget | undefined
}
