import { InvalidArgumentError, Option } from 'commander'
import { parseExpiry } from './expiry.ts'

/** The option for the configuration file, which commands validate against where no gateway runs. */
export const CONFIG = new Option(
  '--config <file>',
  'the configuration; default ./gateway.yaml if it exists (env: GATEWAY_CONFIG)',
)

/** The option for machine-readable output. */
export const JSON_OUTPUT = new Option('--json', 'print JSON, with the field names of the API')

/** Parses a nonnegative whole number. */
export function wholeNumber(text: string): number {
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(Number(text))) {
    throw new InvalidArgumentError('Expected a whole number.')
  }
  return Number(text)
}

/** Parses `--expires` into Unix seconds or -1. */
export function expiry(text: string): number {
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
