import type { UseFormReturnType } from '@mantine/form'
import { type ReactNode, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { differencesOf, mergedEdit } from './differences.ts'
import { EditConflict } from './edit-conflict.tsx'
import { LeaveGuard } from './leave-guard.tsx'
import { showNotice } from './notify.tsx'
import { useAction } from './use-action.ts'

/** An object with its version, and the form in which it is changed. */
interface Edited<Typed extends object, Present> {
  readonly form: UseFormReturnType<Typed>
  readonly object: Present
  /** The values that the form has for an object. */
  readonly typedOf: (object: Present) => Typed
  readonly labels: Readonly<Partial<Record<keyof Typed, string>>>
  /**
   * Saves what is typed, based on a version. `over` is the present object, if another user's change is
   * overwritten. Resolves to the object as it is then.
   */
  readonly save: (typed: Typed, version: string | undefined, over: Present | undefined) => Promise<Present>
  readonly reload: () => Promise<unknown>
  /** Message after a save. */
  readonly saved: (typed: Typed) => string
  /** Shows an error at the field that it names; false where it names none. */
  readonly showAtField?: (error: unknown) => boolean
}

/** The form of an object that others may change as well. */
interface Edit<Typed> {
  readonly save: (typed: Typed) => void
  readonly isSaving: boolean
  readonly error: unknown
  /** Asks before unsaved values are left, and which values to keep where another user's change came first. */
  readonly dialogs: ReactNode
}

const REFUSED = 'changed_meanwhile'

/** Maximum number of changes of others that one save is merged with. */
const MAX_MERGES = 5

/**
 * Keeps the object that a form began with, because the page may load a newer one in the meantime. Changes of
 * others to other fields are merged; those to the same fields open a dialog.
 */
export function useEdit<Typed extends object, Present extends { readonly version: string }>({
  form,
  object,
  typedOf,
  labels,
  save,
  reload,
  saved,
  showAtField = () => false,
}: Edited<Typed, Present>): Edit<Typed> {
  const [basis, setBasis] = useState(object)
  /** The present object, after a save that another user's change preceded. */
  const [present, setPresent] = useState<Present>()
  const begin = (from: Present): void => {
    form.setValues(typedOf(from))
    form.resetDirty(typedOf(from))
    setBasis(from)
    setPresent(undefined)
  }
  const merge = (typed: Typed, theirs: Present) =>
    mergedEdit({ base: typedOf(basis), mine: typed, theirs: typedOf(theirs) })
  /** Resolves to undefined if another user has changed the same fields; a dialog asks about them. */
  const saveMerged = async (typed: Typed, over: Present | undefined): Promise<Present | undefined> => {
    let based = over
    for (let merges = 0; ; merges += 1) {
      try {
        return await save(based ? merge(typed, based).merged : typed, (based ?? basis).version, based)
      } catch (error) {
        if (!isOutdated(error) || merges === MAX_MERGES) throw error
        based = error.present as Present
        if (merge(typed, based).collisions.length > 0) return setPresent(based), undefined
      }
    }
  }
  const saving = useAction(async (typed: Typed, over: Present | undefined) => {
    try {
      const now = await saveMerged(typed, over)
      if (now === undefined) return
      begin(now)
      await reload()
      showNotice(saved(typed))
    } catch (error) {
      if (!showAtField(error)) throw error
    }
  })
  const dialogs = (
    <>
      <LeaveGuard isChanged={form.isDirty()} />
      <EditConflict
        differences={
          present &&
          differencesOf(labels, form.values, typedOf(present), merge(form.values, present).collisions)
        }
        onTake={() => {
          if (present) begin(present)
          void reload()
        }}
        onOverwrite={() => {
          setPresent(undefined)
          void saving.run(form.values, present)
        }}
        onClose={() => setPresent(undefined)}
      />
    </>
  )
  return {
    save: (typed) => void saving.run(typed, undefined),
    isSaving: saving.isRunning,
    error: saving.error,
    dialogs,
  }
}

function isOutdated(error: unknown): error is ApiError {
  return error instanceof ApiError && error.code === REFUSED && error.present !== undefined
}
