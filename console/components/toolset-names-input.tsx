import { TagsInput } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { type ReactNode, useState } from 'react'
import { mcpToolsetsQuery } from '../api/tools.ts'
import { useTexts } from '../locales/use-texts.tsx'
import { useSignedInAccount } from './session.tsx'

/**
 * Input for the names of the toolsets to which a key is restricted. Administrators choose from a list, which only they may
 * read.
 */
export function ToolsetNamesInput({
  ...input
}: {
  readonly value?: string[]
  readonly error?: ReactNode
  readonly onChange?: (names: string[]) => void
}) {
  const { tools } = useTexts()
  const { profile, isAdmin } = useSignedInAccount()
  const [isUsed, setIsUsed] = useState(false)
  const { data: known = [] } = useQuery({ ...mcpToolsetsQuery(profile.id), enabled: isUsed && isAdmin })
  return (
    <TagsInput
      label={tools.toolsets}
      description={tools.keyToolsetsHint}
      data={known.map(({ name }) => name)}
      splitChars={[',', ' ', '\n']}
      spellCheck={false}
      {...input}
      onFocus={() => setIsUsed(true)}
    />
  )
}
