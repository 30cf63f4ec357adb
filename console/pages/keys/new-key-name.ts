import type { UseFormReturnType } from '@mantine/form'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { keyNamesQuery } from '../../api/keys.ts'
import { useFormats, useSignedIn } from '../../components/session.tsx'
import { unusedName } from '../../components/unused-name.ts'
import { useTexts } from '../../locales/use-texts.tsx'
import type { TypedKey } from './key-form.ts'

/** The name, or its next free number: `Key of 23 Nov (2)`. */
export function unusedKeyName(base: string, taken: ReadonlySet<string>): string {
  return unusedName(base, taken, (number) => `${base} (${number})`)
}

/** The name that a key made today has unless another one is typed. */
export function useNewKeyName(): string {
  const { keys } = useTexts()
  const { day } = useFormats()
  return keys.defaultName(day(Date.now() / 1000))
}

/** Fills in a free name, until another one is typed. */
export function useSuggestedKeyName(form: UseFormReturnType<TypedKey>): void {
  const { profile } = useSignedIn()
  const base = useNewKeyName()
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
