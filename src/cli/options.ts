import { type Command, InvalidArgumentError, Option } from 'commander'
import { BUDGET_PERIODS, type BudgetPeriod } from '../domain/budget.ts'
import { MAX_TIME_S } from '../domain/calendar.ts'
import type { Fields, FieldNamesWith, ValueOf } from '../domain/records/record.ts'
import { type Amount, AMOUNT_FORM, parseAmount } from './amount.ts'

/**
 * The option for the configuration file. If no gateway is running, commands read it to validate their input.
 */
export const CONFIG_OPTION = new Option(
  '--config <file>',
  'the configuration; default ./gateway.yaml if it exists (env: GATEWAY_CONFIG)',
)

/** The option for machine-readable output. */
export const JSON_OPTION = new Option('--json', 'print JSON, with the field names of the API')

/** Parses a nonnegative whole number. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new InvalidArgumentError('Expected a whole number.')
  }
  return Number(text)
}

/** The command-line options that set the amount and the period of a budget. */
export const BUDGET_OPTIONS = [
  new Option('--budget <amount>', `the most that may be spent in each period: ${AMOUNT_FORM}`).argParser(
    parseAmount,
  ),
  new Option('--per <period>', 'the period of the budget').choices(BUDGET_PERIODS),
] as const

/** Values of the options in `BUDGET_OPTIONS`. */
export interface BudgetOptions {
  readonly budget?: Amount
  readonly per?: BudgetPeriod
}

/** The fields of a budget, with the amount as it was given. */
interface GivenBudget {
  readonly budget?: Amount
  readonly budget_period?: BudgetPeriod
}

/** Returns the fields of a budget. Exits with an error if only one of the two options is given. */
export function budgetFromOptions({ budget, per }: BudgetOptions, command: Command): GivenBudget {
  if (budget === undefined && per === undefined) return {}
  if (budget === undefined || (per === undefined && budget.value.digits > 0n))
    return command.error(
      'error: expected a budget with its period: --budget <amount> --per day, week or month',
    )
  return { budget, ...(per && { budget_period: per }) }
}

/**
 * Returns the fields of a changed budget. An option that is not given leaves its field unchanged. Exits with
 * an error if neither option is given.
 */
export function changedBudgetFromOptions({ budget, per }: BudgetOptions, command: Command): GivenBudget {
  if (budget === undefined && per === undefined)
    return command.error('error: expected what to change: --budget <amount>, --per day, week or month')
  return { ...(budget !== undefined && { budget }), ...(per && { budget_period: per }) }
}

/** Parses `--expires` into Unix seconds or -1. */
export function parseExpiresOption(text: string): number {
  const time = parseExpiry(text, Date.now())
  if (time === undefined) {
    throw new InvalidArgumentError(
      'Expected "never", a duration such as 30d or 12h, a date such as 2027-01-31 (in UTC), or a Unix time in seconds.',
    )
  }
  return time
}

/** Parses a comma-separated list. */
export function commaList(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}

/** Parses a comma-separated list of what a new key is restricted to: an empty one would not restrict it. */
export function filledList(text: string): string[] {
  const entries = commaList(text)
  if (entries.length === 0) throw new InvalidArgumentError('Expected at least one entry.')
  return entries
}

const SECONDS = new Map([
  ['m', 60],
  ['h', 3600],
  ['d', 86_400],
  ['w', 604_800],
])

const DATE = /^\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:\d\d)?)?$/i

/**
 * Parses the expiry of a key into Unix seconds; −1 for `never`. Accepts a duration from now (`90m`, `12h`,
 * `30d`, `2w`), a date or date and time (UTC unless it states an offset), and Unix seconds. Undefined for
 * anything else.
 */
export function parseExpiry(text: string, nowMs: number): number | undefined {
  if (text === 'never' || text === '-1') return -1
  const [, amount, unit = ''] = /^(\d{1,6})([mhdw])$/.exec(text) ?? []
  if (amount !== undefined)
    return inRange(Math.floor(nowMs / 1000) + Number(amount) * (SECONDS.get(unit) ?? 0))
  if (/^\d{1,12}$/.test(text)) return inRange(Number(text))
  if (!DATE.test(text)) return undefined
  const normalized = text.toUpperCase().replace(' ', 'T')
  const [day = '', time] = normalized.split('T')
  const milliseconds = Date.parse(
    time === undefined || /(?:Z|[+-]\d\d:\d\d)$/.test(time) ? normalized : `${normalized}Z`,
  )
  return exists(day) ? inRange(Math.floor(milliseconds / 1000)) : undefined
}

// `Date.parse` reads 30 February as 2 March.
function exists(day: string): boolean {
  const midnightMs = Date.parse(day)
  return !Number.isNaN(midnightMs) && new Date(midnightMs).toISOString().startsWith(day)
}

function inRange(seconds: number): number | undefined {
  return seconds > 0 && seconds <= MAX_TIME_S ? seconds : undefined
}

/** Adds a command-line option for each field that declares one. An empty default is not shown in the help. */
export function addRecordOptions(command: Command, fields: Fields): Command {
  for (const [, option] of optionsOf(fields)) command.addOption(option)
  return command
}

/** Returns the fields whose options are given on the command line, without amounts (`Amount`). */
export function fieldsFromOptions<const F extends Fields>(
  fields: F,
  options: object,
): { readonly [Name in FieldNamesWith<F, 'option'>]?: ValueOf<F[Name]> } {
  const given = options as Readonly<Record<string, unknown>>
  const values = optionsOf(fields)
    .filter(([name]) => fields[name]?.option?.[0] !== 'amount')
    .map(([name, option]) => [name, given[option.attributeName()]])
  return Object.fromEntries(values.filter(([, value]) => value !== undefined)) as never
}

function optionsOf(fields: Fields): [string, Option][] {
  return Object.entries(fields).flatMap(([name, { type, default: value, option }]) => {
    if (!option) return []
    const flag = `--${name.replaceAll('_', '-')}`
    if (type.json === 'boolean') return [[name, new Option(flag, option[1])]]
    const made = new Option(`${flag} <${option[0]}>`, option[1])
    if (option[0] === 'amount') return [[name, made.argParser(parseAmount)]]
    if (type.json === 'integer') made.argParser(wholeNumber)
    return [[name, value === '' ? made : made.default(value)]]
  })
}
