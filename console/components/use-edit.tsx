import type { UseFormReturnType } from '@mantine/form'
import { type ReactNode, useState } from 'react'
import { ApiError } from '../api/api-error.ts'
import { differencesOf } from './differences.ts'
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

/** Keeps the version that a form began with, because the page may load a newer one in the meantime. */
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
  const [version, setVersion] = useState<string | undefined>(object.version)
  /** The present object, after a save that another user's change preceded. */
  const [present, setPresent] = useState<Present>()
  const begin = (from: Present): void => {
    form.setValues(typedOf(from))
    form.resetDirty(typedOf(from))
    setVersion(from.version)
    setPresent(undefined)
  }
  const saving = useAction(async (typed: Typed, basedOn: string | undefined, over: Present | undefined) => {
    try {
      begin(await save(typed, basedOn, over))
      await reload()
      showNotice(saved(typed))
    } catch (error) {
      const isOutdated = error instanceof ApiError && error.code === REFUSED && error.present !== undefined
      if (isOutdated) setPresent(error.present as Present)
      else if (!showAtField(error)) throw error
    }
  })
  const dialogs = (
    <>
      <LeaveGuard isChanged={form.isDirty()} />
      <EditConflict
        differences={present && differencesOf(labels, form.values, typedOf(present))}
        onTake={() => {
          if (present) begin(present)
          void reload()
        }}
        onOverwrite={() => {
          setPresent(undefined)
          void saving.run(form.values, present?.version, present)
        }}
        onClose={() => setPresent(undefined)}
      />
    </>
  )
  return {
    save: (typed) => void saving.run(typed, version, undefined),
    isSaving: saving.isRunning,
    error: saving.error,
    dialogs,
  }
}
