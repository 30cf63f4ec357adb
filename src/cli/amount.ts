import { InvalidArgumentError } from 'commander'
import { type Decimal, multiply, parseDecimal } from '../domain/decimal.ts'
import type { QuotaDisplay } from '../management/gateway-status.ts'
import type { CommandContext } from './command-context.ts'
import { quotaUnitsText } from '../management/quota-text.ts'

/** An amount as it is given on the command line: quota units, or dollars with the suffix `usd`. */
export interface Amount {
  readonly given: string
  readonly value: Decimal
  readonly unit: 'quota' | 'usd'
}

/** The form of an amount, for help texts. `$10` is not offered, because a shell turns it into `0`. */
export const AMOUNT_FORM = '10usd, or quota units'

/** Parses an amount such as `5000000` or `10usd`. */
export function parseAmount(given: string): Amount {
  const [, number, suffix] = /^(\d{1,16}(?:\.\d{1,12})?)(usd)?$/i.exec(given) ?? []
  const value = number === undefined ? undefined : parseDecimal(number)
  if (value === undefined || (suffix === undefined && number?.includes('.')))
    throw new InvalidArgumentError(
      `expected a whole number of quota units, or dollars such as 10usd, not "${given}"`,
    )
  return { given, value, unit: suffix === undefined ? 'quota' : 'usd' }
}

/**
 * Converts amounts to quota units, and prints each of them in both units on standard error. Called before a command
 * acts. An amount in quota units that is less than a cent gets a warning, because dollars were probably meant.
 */
export function quotaOfAmounts<const Amounts extends { readonly [name: string]: Amount | undefined }>(
  shell: CommandContext,
  display: QuotaDisplay,
  amounts: Amounts,
): { readonly [Name in keyof Amounts]?: number } {
  const quota: Record<string, number> = {}
  for (const [name, amount] of Object.entries(amounts)) {
    if (amount === undefined) continue
    const units = quotaOf(amount, display)
    quota[name] = units
    if (units === 0) continue
    shell.err.write(`${name}: ${quotaUnitsText(units, { ...display, display: 'USD' })}\n`)
    if (amount.unit === 'quota' && units * CENTS < display.quota_per_unit)
      shell.err.write(`Warning: ${amount.given} is in quota units; for dollars, write ${amount.given}usd.\n`)
  }
  return quota
}

const CENTS = 100

function quotaOf({ given, value, unit }: Amount, { quota_per_unit }: QuotaDisplay): number {
  if (unit === 'quota') return Number(value.digits)
  const { digits, scale } = multiply(value, { digits: BigInt(quota_per_unit), scale: 0 })
  const one = 10n ** BigInt(scale)
  if (digits % one !== 0n)
    throw new Error(`${given} is not a whole number of quota units: ${quota_per_unit} are one dollar`)
  const units = Number(digits / one)
  if (!Number.isSafeInteger(units)) throw new Error(`${given} is too much`)
  return units
}
