import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { channelNamesQuery } from '../../api/channels.ts'
import { useSignedInAccount } from '../../components/session.tsx'
import { unusedName } from '../../components/unused-name.ts'
import type { ChannelForm } from './channel-form.ts'
import { channelNamePrefix } from './providers.ts'

/** Fills in an unused name for the chosen provider, until the user types another name. */
export function useSuggestedName(form: ChannelForm, isNew: boolean): void {
  const { profile } = useSignedInAccount()
  const base = channelNamePrefix(Number(form.values.type))
  const { data: taken } = useQuery({ ...channelNamesQuery(profile.id, base), enabled: isNew })
  const suggested = useRef(form.values.name)
  useEffect(() => {
    const { name: typed } = form.getValues()
    if (!isNew || (typed !== '' && typed !== suggested.current)) return
    const name = taken ? unusedName(base, taken) : base
    suggested.current = name
    if (name === typed) return
    const wasChanged = form.isDirty()
    form.setFieldValue('name', name)
    if (!wasChanged) form.resetDirty({ ...form.getValues(), name })
  }, [base, taken, isNew])
}
