import type { z } from 'zod'
import { type Budget, BUDGET_PERIODS, type BudgetPeriod } from '../domain/budget.ts'
import { findNearest } from '../domain/nearest.ts'
import { type Group, GROUP_SETTINGS } from '../domain/records/group.ts'
import { escapeInvisible, isFullyVisible } from '../domain/username.ts'
import { contentTermsSchema } from './content-log.ts'
import {
  decimalSchema,
  schemasOfDeclaredFields,
  dictionarySchema,
  type Field,
  integerSchema,
  oneOfSchema,
  InvalidValue,
  sectionSchema,
  textSchema,
} from './fields.ts'
import { keysOfNode, type YamlNode } from './yaml-node.ts'

/** The name of the group that exists even if the file does not declare it. */
export const DEFAULT_GROUP = 'default'

const { defaults } = GROUP_SETTINGS

/** Schema of the section `groups`: `docs/configuration.md: Groups`. */
export const groupsSchema: Field<ReadonlyMap<string, Group>> = dictionarySchema(
  sectionSchema({
    ...schemasOfDeclaredFields(GROUP_SETTINGS.fields, { ratio: decimalSchema() }),
    ...budgetFields(),
    content_log: contentTermsSchema,
  }).superRefine(requireBudgetWithPeriod),
  'a mapping from group names',
)
  .superRefine((declared, ctx) => {
    for (const name of declared.keys())
      if (!isFullyVisible(name)) {
        const message = `expected a name without invisible and blank characters, found "${escapeInvisible(name)}"`
        ctx.addIssue({ code: 'custom', path: [name], message })
      }
  })
  .transform((declared) => {
    const all = new Map<string, Group>([[DEFAULT_GROUP, { ...defaults, name: DEFAULT_GROUP }]])
    for (const [name, { budget, budget_period, content_log: contentLog, ...settings }] of declared)
      all.set(name, {
        ...settings,
        name,
        budget: declaredBudget({ budget, budget_period }) ?? undefined,
        ...(contentLog && { contentLog }),
      })
    return all
  })

/** The groups that the file names, even if their entries are invalid. */
export function declaredGroups(section: YamlNode): ReadonlyMap<string, Group> {
  const read = groupsSchema.safeParse(section)
  if (read.success) return read.data
  return new Map([DEFAULT_GROUP, ...keysOfNode(section)].map((name) => [name, { ...defaults, name }]))
}

/** The name of a group that the file declares, or `default`. */
export function groupNameSchema(declared: ReadonlySet<string>): Field<string> {
  return textSchema('the name of a group', (given) => {
    if (declared.has(given)) return given
    return new InvalidValue(`a group that groups declares${suggestGroup(given, declared)}`)
  })
}

/**
 * Text for an error message, such as ` (premium?)`, if a declared group has a similar name; otherwise empty.
 */
export function suggestGroup(given: string, declared: Iterable<string>): string {
  const suggestion = findNearest(given, declared)
  return suggestion === undefined ? '' : ` (${suggestion}?)`
}

/** Fields of a budget, which users, tokens and groups have; `docs/ledger.md: Budgets`. */
export function budgetFields(maxQuota = Number.MAX_SAFE_INTEGER) {
  return {
    budget: integerSchema(0, maxQuota).optional(),
    budget_period: oneOfSchema(BUDGET_PERIODS).optional(),
  }
}

interface GivenBudget {
  readonly budget?: number | undefined
  readonly budget_period?: BudgetPeriod | undefined
}

/** Refuses a budget without a period, and a period without a budget. */
export function requireBudgetWithPeriod(
  { budget, budget_period: period }: GivenBudget,
  ctx: z.RefinementCtx,
): void {
  if (budget !== undefined && budget > 0 && period === undefined) {
    const message = `expected one of ${BUDGET_PERIODS.join(', ')}, found nothing`
    ctx.addIssue({ code: 'custom', path: ['budget_period'], message })
  }
  if (budget === undefined && period !== undefined) {
    const message = 'expected a budget for budget_period, found nothing'
    ctx.addIssue({ code: 'custom', path: ['budget'], message })
  }
}

/**
 * The declared budget. Null if the file declares 0, which means no budget; undefined if it declares nothing.
 */
export function declaredBudget({ budget, budget_period: period }: GivenBudget): Budget | null | undefined {
  if (budget === undefined) return undefined
  return budget > 0 && period !== undefined ? { amount: budget, period } : null
}
