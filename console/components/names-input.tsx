import { TagsInput } from '@mantine/core'
import { type QueryKey, useQuery, type UseQueryOptions } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { useSignedInAccount } from './session.tsx'

/** Input for names of guards or toolsets. Administrators choose from the list of `query`, which only they may read. */
export function NamesInput<Named extends { readonly name: string }, Key extends QueryKey>({
  query,
  within,
  ...input
}: {
  readonly label: string
  readonly description: string
  readonly query: UseQueryOptions<readonly Named[], Error, readonly Named[], Key>
  /** The only names that may be chosen. */
  readonly within?: readonly string[] | undefined
  readonly value?: string[]
  readonly disabled?: boolean
  readonly error?: ReactNode
  readonly onChange?: (names: string[]) => void
}) {
  const { isAdmin } = useSignedInAccount()
  const [isUsed, setIsUsed] = useState(false)
  const { data: known = [] } = useQuery({ ...query, enabled: isUsed && isAdmin && !within })
  return (
    <TagsInput
      data={within ?? known.map(({ name }) => name)}
      splitChars={[',', ' ', '\n']}
      spellCheck={false}
      {...input}
      onFocus={() => setIsUsed(true)}
    />
  )
}
