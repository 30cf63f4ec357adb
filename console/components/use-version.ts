import { useState } from 'react'
import { ApiError } from '../api/api-error.ts'

/** The version of an object that a form is based on. */
export interface FormVersion<Present> {
  readonly version: string | undefined
  /** The object as it is now, after a save that somebody else's change preceded. */
  readonly present: Present | undefined
  /** Goes on from another version: that of a save, or of somebody else's change. */
  readonly continueFrom: (version: string | undefined) => void
  /** Whether a save was refused because of somebody else's change, which is then `present`. */
  readonly isOutdated: (error: unknown) => boolean
  /** Goes on with the form, and decides at the next save. */
  readonly decideLater: () => void
}

const REFUSED = 'changed_meanwhile'

/** Keeps the version that a form began with: what the page asks for meanwhile may be newer. */
export function useVersion<Present extends object>(first: string | undefined): FormVersion<Present> {
  const [version, setVersion] = useState(first)
  const [present, setPresent] = useState<Present>()
  return {
    version,
    present,
    continueFrom: (next) => {
      setVersion(next)
      setPresent(undefined)
    },
    isOutdated: (error) => {
      if (!(error instanceof ApiError) || error.code !== REFUSED || error.present === undefined) return false
      setPresent(error.present as Present)
      return true
    },
    decideLater: () => setPresent(undefined),
  }
}
