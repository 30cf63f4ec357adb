import './styles.ts'
import { MantineProvider, mergeThemeOverrides } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { Notifications } from '@mantine/notifications'
import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import { setClientCallbacks } from '../api/client.ts'
import { preferences, usePreferences } from '../components/preferences.ts'
import { loadTexts, TextsProvider } from '../locales/use-texts.tsx'
import { reportConnectionLost } from './connection.ts'
import { ConnectionLost } from './connection-lost.tsx'
import { queryClient } from './query-client.ts'
import { router } from './router.tsx'
import { EndedSessionDialog } from './ended-session-dialog.tsx'
import { endDisabledSession, signInAgain } from '../components/session-recovery.ts'
import { cssVariables, theme } from './theme.ts'

const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? ''
// Read by the library that prevents scrolling of the page behind dialogs.
Object.assign(globalThis, { __webpack_nonce__: nonce })

setClientCallbacks({ signInAgain, connectionLost: reportConnectionLost, userDisabled: endDisabledSession })
const first = await loadTexts(preferences().language)
createRoot(document.querySelector('#root') as HTMLElement).render(<Root firstTexts={first} />)

function Root({ firstTexts }: { readonly firstTexts: Awaited<ReturnType<typeof loadTexts>> }) {
  const { theme: choice, language } = usePreferences()
  const prefersDark = useMediaQuery('(prefers-color-scheme: dark)', undefined, {
    getInitialValueInEffect: false,
  })
  const isPhone = useMediaQuery('(width < 900px)', undefined, { getInitialValueInEffect: false })
  const [texts, setTexts] = useState(firstTexts)
  const scheme = choice === 'system' ? (prefersDark ? 'dark' : 'light') : choice
  useEffect(() => {
    document.documentElement.dataset['theme'] = scheme
  }, [scheme])
  useEffect(() => {
    void loadTexts(language).then(setTexts)
  }, [language])
  useEffect(() => {
    document.documentElement.lang = texts.tag
  }, [texts])
  return (
    <MantineProvider
      theme={mergeThemeOverrides(theme, {
        components: Object.fromEntries(
          ['Select', 'MultiSelect'].map((name) => [
            name,
            { defaultProps: { nothingFoundMessage: texts.common.nothingFound } },
          ]),
        ),
      })}
      forceColorScheme={scheme}
      cssVariablesResolver={cssVariables}
      getStyleNonce={() => nonce}
    >
      <TextsProvider texts={texts}>
        <QueryClientProvider client={queryClient}>
          <RouterProvider router={router} />
          <EndedSessionDialog />
        </QueryClientProvider>
        <ConnectionLost />
        <Notifications
          position={isPhone ? 'top-center' : 'bottom-left'}
          containerWidth={isPhone ? 320 : 208}
          limit={4}
        />
      </TextsProvider>
    </MantineProvider>
  )
}
