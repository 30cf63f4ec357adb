import { Button } from '@mantine/core'
import { IconMessages } from '@tabler/icons-react'
import { Link } from '@tanstack/react-router'
import { useTexts } from '../locales/use-texts.tsx'
import type { SearchState } from './search-state.ts'

export function SessionsButton({ search }: { readonly search: SearchState }) {
  const { sessions } = useTexts()
  return (
    <Button
      component={Link}
      variant="default"
      to="/sessions"
      search={search as never}
      leftSection={<IconMessages size={16} aria-hidden />}
    >
      {sessions.title}
    </Button>
  )
}
