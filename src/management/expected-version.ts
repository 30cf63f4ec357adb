import { GatewayError } from '../errors.ts'
import { textField } from './input-fields.ts'

const EXPECTED = 'expected the version of the object that the change is based on'

/** The version of the object on which a change is based. Without it, the change applies to any version. */
export const versionField = textField(EXPECTED).max(100, { error: EXPECTED })

/**
 * Makes a change. If it fails because the object has changed meanwhile, the current object is added to the
 * error, so that the client can compare.
 */
export async function addCurrentObject<Changed>(
  change: () => Promise<Changed>,
  present: () => Promise<object | undefined>,
): Promise<Changed> {
  try {
    return await change()
  } catch (error) {
    if (!isChangedMeanwhile(error)) throw error
    throw new GatewayError(error.code, error.message, { present: await present() })
  }
}

/**
 * Makes a change that keeps a part of the object as it reads it. If the object has changed meanwhile, the change is
 * made again, unless the client named the version on which it is based.
 */
export async function repeatIfChanged<Changed>(
  version: string | null | undefined,
  change: () => Promise<Changed>,
): Promise<Changed> {
  for (;;) {
    try {
      return await change()
    } catch (error) {
      if (typeof version === 'string' || !isChangedMeanwhile(error)) throw error
    }
  }
}

function isChangedMeanwhile(error: unknown): error is GatewayError {
  return error instanceof GatewayError && error.code === 'changed_meanwhile'
}
