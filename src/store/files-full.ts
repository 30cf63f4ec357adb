import { GatewayError } from '../errors.ts'

/** The error if a user keeps too many bytes for another file. */
export function filesFull(keptBytes: number, maxBytes: number): GatewayError {
  return new GatewayError(
    'files_full',
    `the files of this user have ${keptBytes} of at most ${maxBytes} bytes, so there is no room for this one; delete files`,
  )
}
