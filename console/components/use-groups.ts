import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { groupsQuery } from '../api/users.ts'
import { useSignedInAccount } from './session.tsx'

/**
 * The groups to choose from. To save a request, only the already chosen groups are listed until the field
 * gets the focus.
 */
export function useGroups(chosen: readonly string[]): {
  readonly data: string[]
  readonly onFocus: () => void
} {
  const { profile } = useSignedInAccount()
  const [isUsed, setIsUsed] = useState(false)
  const { data: groups = [] } = useQuery({ ...groupsQuery(profile.id), enabled: isUsed })
  return { data: [...new Set([...groups, ...chosen])], onFocus: () => setIsUsed(true) }
}
