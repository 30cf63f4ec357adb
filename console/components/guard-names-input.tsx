import { TagsInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { guardsQuery } from '../api/guards.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { useSignedInAccount } from './session.tsx'

/**
 * Input for the names of the guards of a key or a group. Administrators choose from a list, which only they
 * may read.
 */
export function GuardNamesInput({
  ...input
}: {
  readonly value?: string[]
  readonly disabled?: boolean
  readonly error?: ReactNode
  readonly onChange?: (names: string[]) => void
}) {
  const { guards } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const [isUsed, setIsUsed] = useState(false)
  const { data: known = [] } = useQuery({ ...guardsQuery(profile.id), enabled: isUsed && isAdmin })
  return (
    <TagsInput
      label={guards.title}
      description={guards.namesHint}
      data={known.map(({ name }) => name)}
      splitChars={[',', ' ', '\n']}
      spellCheck={false}
      {...input}
      onFocus={() => setIsUsed(true)}
    />
  )
}
