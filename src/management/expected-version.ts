import { GatewayError } from '../errors.ts'
import { textField } from './text-fields.ts'

const EXPECTED = 'expected the version of the object that the change is based on'

/** The version that a change is based on; without one, the change applies to whatever is there. */
export const versionField = textField(EXPECTED).max(100, { error: EXPECTED })

/** Makes a change; a refusal of an old version carries the present object, for the client to compare. */
export async function withPresent<Changed>(
  change: () => Promise<Changed>,
  present: () => Promise<object | undefined>,
): Promise<Changed> {
  try {
    return await change()
  } catch (error) {
    if (!(error instanceof GatewayError) || error.code !== 'changed_meanwhile') throw error
    throw new GatewayError(error.code, error.message, { present: await present() })
  }
}
