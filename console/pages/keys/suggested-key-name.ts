import type { UseFormReturnType } from '@mantine/form'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { keyNamesQuery } from '../../api/keys.ts'
import { unusedKeyName, useDefaultKeyName } from '../../components/default-key-name.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import type { KeyFormValues } from './key-form-values.ts'

/** Fills in an unused name, until the user types another name. */
export function useSuggestedKeyName(form: UseFormReturnType<KeyFormValues>): void {
  const { profile } = useSignedInAccount()
  const base = useDefaultKeyName()
  const { data: taken } = useQuery(keyNamesQuery(profile.id, base))
  const suggested = useRef('')
  useEffect(() => {
    const { name: typed } = form.getValues()
    if (typed !== suggested.current) return
    const name = taken ? unusedKeyName(base, taken) : base
    suggested.current = name
    if (name !== typed) form.setFieldValue('name', name)
  }, [base, taken])
}
