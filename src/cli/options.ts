import { InvalidArgumentError, Option } from 'commander'
import { parseExpiry } from './expiry.ts'

/** The configuration file. Commands need it where no gateway runs: its settings decide what may be. */
export const CONFIG = new Option(
  '--config <file>',
  'the configuration; default ./gateway.yaml if it is there (env: GATEWAY_CONFIG)',
)

/** For programs. */
export const JSON_OUTPUT = new Option('--json', 'print JSON, with the field names of the API')

/** Reads a whole number that is not negative. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new InvalidArgumentError('A whole number is expected.')
  }
  return Number(text)
}

/** Reads what `--expires` says, as Unix seconds or -1. */
export function expiry(text: string): number {
  const time = parseExpiry(text, Date.now())
  if (time === undefined) {
    throw new InvalidArgumentError(
      'Expected is "never", a span such as 30d or 12h, a date such as 2027-01-31 (in UTC), or a Unix time in seconds.',
    )
  }
  return time
}

/** Reads a list with commas between its entries. */
export function commaList(text: string): string[] {
  return text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '')
}
