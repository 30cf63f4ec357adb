import { Calendar } from '../domain/calendar.ts'
import { GatewayError } from '../errors.ts'

/** The calendar of the time zone `tz`. Throws `invalid_request` if there is no such zone. */
export function calendarOf(tz: string): Calendar {
  try {
    return new Calendar(tz)
  } catch {
    throw new GatewayError('invalid_request', 'tz: expected the name of a time zone, such as Europe/Berlin')
  }
}
